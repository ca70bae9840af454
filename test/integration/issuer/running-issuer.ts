/** An issuer on a loopback port, in this process, with clients of every kind. */

import { Registry } from '@prometheus-io/client';
import { type ClientStore, createClientStore, defineClients } from '../../../src/issuer/clients.ts';
import { type Issuer, startIssuer } from '../../../src/issuer/issuer.ts';
import {
  createKeyRing,
  generateSigningKey,
  type KeyRing,
  type SigningAlgorithm,
} from '../../../src/issuer/keys.ts';
import { createIssuerMetrics } from '../../../src/issuer/metrics.ts';
import { createLogger } from '../../../src/platform/log/logger.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';

type IssuerOptions = Parameters<typeof startIssuer>[0];

type ClientDefinition = Parameters<typeof defineClients>[0][number];

export const SHOP: ClientDefinition = {
  clientId: 'shop',
  clientSecret: 's3cret',
  scopes: ['read', 'write'],
  audience: ['payments', 'orders'],
  tokenLifetime: '60s',
};

export interface RunningIssuer extends Issuer {
  readonly clients: ClientStore;
  readonly keys: KeyRing;
  readonly registry: Registry;
  /** The log lines so far, as written. */
  readonly lines: readonly string[];
}

export async function runIssuer(
  clients: readonly ClientDefinition[] = [SHOP],
  options: Partial<IssuerOptions> & { readonly algorithm?: SigningAlgorithm } = {},
): Promise<RunningIssuer> {
  const lines: string[] = [];
  const log = createLogger('debug', { write: (line) => lines.push(line) });
  const registry = new Registry();
  const store = createClientStore(defineClients(clients));
  const keys = createKeyRing(await generateSigningKey(options.algorithm ?? 'ES256'), systemClock);
  const issuer = await startIssuer({
    listen: { host: '127.0.0.1', port: 0 },
    realm: 'dx',
    clients: store,
    keys,
    tokenLifetimeSeconds: 300,
    metrics: createIssuerMetrics(registry),
    clock: systemClock,
    log,
    ...options,
  });
  return { ...issuer, clients: store, keys, registry, lines };
}

export function basic(clientId: string, secret: string): string {
  return `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`;
}

export const FORM = 'application/x-www-form-urlencoded';

/** A well-formed request for a token, apart from what `change` makes of it. */
export async function askForToken(
  tokenUrl: string,
  change: {
    readonly authorization?: string | null;
    readonly contentType?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Uint8Array<ArrayBuffer>;
    readonly query?: string;
  } = {},
): Promise<{
  readonly status: number;
  readonly headers: Headers;
  readonly json: Readonly<Record<string, unknown>>;
}> {
  const { authorization = basic('shop', 's3cret'), body = 'grant_type=client_credentials' } = change;
  const response = await fetch(`${tokenUrl}${change.query ?? ''}`, {
    method: 'POST',
    headers: {
      'Content-Type': change.contentType ?? FORM,
      ...(authorization === null ? {} : { Authorization: authorization }),
      ...change.headers,
    },
    body,
  });
  return {
    status: response.status,
    headers: response.headers,
    json: (await response.json()) as Record<string, unknown>,
  };
}
