import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startAdminServer } from '../../src/admin/admin-server.ts';
import { issuerAdminEndpoints } from '../../src/issuer/admin.ts';
import { createClientStore, defineClients } from '../../src/issuer/clients.ts';
import { startIssuer } from '../../src/issuer/issuer.ts';
import { createKeyRing, generateSigningKey } from '../../src/issuer/keys.ts';
import { createIssuerMetrics } from '../../src/issuer/metrics.ts';
import { createLogger } from '../../src/platform/log/logger.ts';
import { layOutSecret } from '../../src/platform/mounted/secret-layout.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { systemClock } from '../../src/platform/time/clock.ts';

export const AUDIENCE = 'soak-api';
const CLIENT_ID = 'soak-app';
const ANY_PORT = { host: '127.0.0.1', port: 0 };

/** The identity provider, and the mounted Secret that it shares with the sidecar. */
export interface Provider {
  readonly authUrl: string;
  /** The `iss` claim. */
  readonly issuer: string;
  readonly jwksUrl: string;
  readonly secretDirectory: string;
  /**
   * Makes secret number `n`: the old one is forgotten at once, then the Secret is swapped. Tokens tell by the scope
   * `secret-n` which secret they were granted for.
   */
  rotateTo(n: number): Promise<void>;
  /** Every secret there has been. */
  readonly secrets: readonly string[];
  close(): Promise<void>;
}

export async function startProvider(tokenLifetimeMs: number): Promise<Provider> {
  const secrets: string[] = [];
  const tokenLifetimeSeconds = tokenLifetimeMs / 1000;

  function makeClients(n: number) {
    const clientSecret = randomBytes(24).toString('base64');
    secrets.push(clientSecret);
    const clients = defineClients([
      {
        clientId: CLIENT_ID,
        clientSecret,
        scopes: [`secret-${n}`],
        audience: [AUDIENCE],
        tokenLifetime: `${tokenLifetimeSeconds}s`,
      },
    ]);
    return { clients, values: { client_id: CLIENT_ID, client_secret: clientSecret } };
  }

  const silent = createLogger('silent');
  const first = makeClients(0);
  const store = createClientStore(first.clients);
  const issuer = await startIssuer({
    listen: ANY_PORT,
    realm: 'dx',
    clients: store,
    keys: createKeyRing(await generateSigningKey('ES256'), systemClock),
    tokenLifetimeSeconds,
    metrics: createIssuerMetrics(new Registry()),
    clock: systemClock,
    log: silent,
  });
  const admin = await startAdminServer(
    ANY_PORT,
    issuerAdminEndpoints(issuer, () => false),
    silent,
  );
  const secretDirectory = await mkdtemp(join(tmpdir(), 'token-sidecar-soak-'));
  const secret = await layOutSecret(secretDirectory, first.values);
  return {
    authUrl: `http://${formatAddress(issuer.address)}`,
    issuer: issuer.issuer,
    jwksUrl: `http://${formatAddress(admin.address)}/jwks`,
    secretDirectory,
    secrets,
    async rotateTo(n) {
      const { clients, values } = makeClients(n);
      store.replace(clients);
      await secret.update(values);
    },
    async close() {
      await issuer.close(0);
      await admin.close();
      await rm(secretDirectory, { recursive: true, force: true });
    },
  };
}
