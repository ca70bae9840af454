import type { Agent } from 'node:http';
import type { LookupFunction } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { CredentialConfig } from '../../config/config.ts';
import { messageOf, systemCodeOf } from '../../platform/errors.ts';
import { MAX_PEM_BYTES, readBoundedFile } from '../../platform/files/bounded-file.ts';
import { InvalidFile } from '../../platform/mounted/mounted-secret.ts';
import { byTheRules } from '../../platform/net/connect.ts';
import { http } from '../../platform/net/node-http.ts';
import { https } from '../../platform/net/node-https.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { CertificateMetrics } from '../../platform/x509/certificate-metrics.ts';
import {
  type ClientCredentials,
  certificateFile,
  clientCertificate,
} from '../client/client-authentication.ts';

interface ProviderConnections {
  /**
   * A changed certificate means a new agent: no connection or TLS session outlives its certificate.
   * @throws {InvalidFile} if the authority's certificates cannot be read.
   */
  with(credentials: ClientCredentials, protocol: ProviderProtocol): Promise<Agent>;
  close(): void;
}

type ProviderProtocol = 'http:' | 'https:';

/** PEM texts. */
interface TlsMaterial {
  readonly ca: string | undefined;
  readonly cert?: string;
  readonly key?: string;
  readonly servername: string | undefined;
}

/** In ms, or a second before the provider closes it (Keep-Alive). */
const IDLE_MS = 4000;

/** @param lookup resolves the provider's name; the system's by default. */
export function providerConnections(
  {
    name: credential,
    tls,
    egressProxy,
    requestTimeoutMs,
  }: Pick<CredentialConfig, 'name' | 'tls' | 'egressProxy' | 'requestTimeoutMs'>,
  clock: Clock,
  lookup: LookupFunction | undefined,
  most = 1,
  certificates?: CertificateMetrics,
): ProviderConnections {
  let made:
    | { readonly protocol: ProviderProtocol; readonly material: TlsMaterial; readonly agent: Agent }
    | undefined;

  return {
    async with(credentials, protocol) {
      const material = await readTlsMaterial(tls, credentials);
      if (made?.protocol === protocol && isDeepStrictEqual(material, made.material)) return made.agent;
      if (made !== undefined) retire(made.agent);
      const agent = createAgent(protocol, material, lookup, most);
      if (egressProxy !== undefined) {
        const { takeThrough } = await import('./egress-agent.ts');
        takeThrough(agent, { proxy: egressProxy, withinMs: requestTimeoutMs, clock });
      }
      made = { protocol, material, agent };
      const { ca, cert } = material;
      if (ca !== undefined) certificates?.inUse({ credential }, 'caFile', 'trust', ca);
      if (cert !== undefined)
        certificates?.inUse({ credential }, certificateFile(credentials) ?? '', 'identity', cert);
      return made.agent;
    },
    close() {
      if (made !== undefined) retire(made.agent);
    },
  };
}

function createAgent(
  protocol: ProviderProtocol,
  material: TlsMaterial,
  lookup: LookupFunction | undefined,
  most: number,
): Agent {
  const connections = {
    keepAlive: true,
    maxSockets: most,
    timeout: IDLE_MS,
    // So that NODE_USE_ENV_PROXY cannot take secrets elsewhere: HTTP_PROXY is often this very sidecar.
    proxyEnv: {},
    ...(lookup === undefined ? {} : { lookup }),
  };
  if (protocol === 'http:') return byTheRules(new http.Agent(connections));
  return byTheRules(
    new https.Agent({
      ...connections,
      ...material,
      ALPNProtocols: ['http/1.1'],
      // So that NODE_TLS_REJECT_UNAUTHORIZED cannot show secrets to strangers.
      rejectUnauthorized: true,
    }),
  );
}

/** Requests in flight keep their connections until they end. */
function retire(agent: Agent): void {
  agent.maxFreeSockets = 0;
  for (const idle of Object.values(agent.freeSockets)) {
    for (const socket of idle ?? []) socket.destroy();
  }
}

async function readTlsMaterial(
  { caFile, serverName }: CredentialConfig['tls'],
  credentials: ClientCredentials,
): Promise<TlsMaterial> {
  return {
    ca: caFile === undefined ? undefined : await readPem(caFile),
    ...clientCertificate(credentials),
    servername: serverName,
  };
}

async function readPem(path: string): Promise<string> {
  try {
    return await readBoundedFile(path, MAX_PEM_BYTES);
  } catch (error) {
    throw new InvalidFile(`${path} cannot be read: ${systemCodeOf(error) ?? messageOf(error)}`);
  }
}
