/** The connections to the provider, made anew when what they trust or show has changed. */

import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import Pool from 'undici/lib/dispatcher/pool.js';
import type { CredentialConfig } from '../config/config.ts';
import { messageOf, systemCodeOf } from '../errors.ts';
import type { ClientCredentials } from './client-credentials.ts';
import { UnusableFile } from './unusable-file.ts';

export type ConnectionPool = InstanceType<typeof Pool>;

export interface ProviderConnections {
  /**
   * The pool for requests of this client. Another certificate, its own or the authority's, means another pool: no
   * connection and no TLS session outlives the certificate it was made with.
   * @throws {UnusableFile} when the authority's certificates cannot be read.
   */
  with(credentials: ClientCredentials): Promise<ConnectionPool>;
  /** Breaks off what is in flight. */
  close(): Promise<void>;
}

export interface ProviderConnectionsOptions {
  readonly origin: string;
  readonly tls: CredentialConfig['tls'];
  readonly connectTimeoutMs: number;
  readonly maxResponseBytes: number;
}

/** PEM texts, as `tls.connect` takes them. */
interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

export function providerConnections(options: ProviderConnectionsOptions): ProviderConnections {
  let material: TlsMaterial | undefined;
  let pool: ConnectionPool | undefined;

  return {
    async with(credentials) {
      const wanted = await readTlsMaterial(options.tls, credentials);
      if (pool !== undefined && isDeepStrictEqual(wanted, material)) return pool;
      void pool?.close();
      material = wanted;
      pool = new Pool(options.origin, {
        connections: 1,
        maxResponseSize: options.maxResponseBytes,
        connect: { ...wanted, timeout: options.connectTimeoutMs },
      });
      return pool;
    },
    async close() {
      await pool?.destroy();
    },
  };
}

async function readTlsMaterial(
  { caFile, serverName }: CredentialConfig['tls'],
  credentials: ClientCredentials,
): Promise<TlsMaterial> {
  return {
    ...(caFile === undefined ? {} : { ca: await readPem(caFile) }),
    ...(credentials.method === 'tls_client_auth'
      ? { cert: credentials.certificate, key: credentials.privateKey }
      : {}),
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new UnusableFile(`${path} cannot be read: ${systemCodeOf(error) ?? messageOf(error)}`, {
      cause: error,
    });
  }
}
