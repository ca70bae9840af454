/** The realm's token endpoint, as a client sees it: one POST, one verdict. */

import { readFile } from 'node:fs/promises';
// Not through undici's entry point: that also loads fetch, WebSocket and caches, at 10 MB and 100 ms in every pod.
import requestThrough from 'undici/lib/api/api-request.js';
import errors from 'undici/lib/core/errors.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import type { Clock } from '../clock.ts';
import type { CredentialConfig, TlsConfig } from '../config/config.ts';
import { messageOf, systemCodeOf } from '../errors.ts';
import { type ClientCredentials, proveClient } from './client-authentication.ts';
import { type RefusedGrant, readTokenResponse, type TokenResponse } from './token-response.ts';

export interface TokenEndpoint {
  /**
   * Requests one token with the client credentials grant (RFC 6749 §4.4). Never rejects: whatever goes wrong is a
   * verdict too. Bounded by the credential's request timeout; `signal` gives up sooner.
   */
  requestToken(credentials: ClientCredentials, signal: AbortSignal): Promise<TokenResponse>;
  close(): Promise<void>;
}

/** A token and its JSON are a few KiB; a provider that sends more is not read to the end. Bytes. */
const MAX_RESPONSE_BYTES = 256 * 1024;

const TIMED_OUT = Symbol('the request timeout has passed');

export function createTokenEndpoint(config: CredentialConfig, clock: Clock): TokenEndpoint {
  const url = new URL(config.tokenUrl);
  let tls: TlsMaterial | undefined;
  let pool: InstanceType<typeof Pool> | undefined;

  /** The connections, made anew when a certificate file has changed since. */
  async function connections(): Promise<InstanceType<typeof Pool>> {
    const material = await readTlsMaterial(config.tls);
    if (pool !== undefined && tls !== undefined && sameMaterial(material, tls)) return pool;
    void pool?.close();
    tls = material;
    pool = new Pool(url.origin, {
      connections: 1,
      maxResponseSize: MAX_RESPONSE_BYTES,
      connect: { ...material, timeout: config.requestTimeoutMs },
    });
    return pool;
  }

  async function post(credentials: ClientCredentials, signal: AbortSignal): Promise<TokenResponse> {
    const proof = proveClient(credentials, config);
    const { statusCode, headers, body } = await requestThrough.call(await connections(), {
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        ...(proof.authorization === undefined ? {} : { authorization: proof.authorization }),
      },
      body: grantForm(config, proof.parameters).toString(),
      signal,
    });
    return readTokenResponse(
      {
        status: statusCode,
        contentType: single(headers['content-type']) ?? '',
        retryAfter: single(headers['retry-after']),
        body: await body.text(),
        receivedAtMs: clock.now().wallMs,
      },
      config.renewal,
    );
  }

  return {
    async requestToken(credentials, signal) {
      const abort = new AbortController();
      const cancelTimeout = clock.after(config.requestTimeoutMs, () => abort.abort(TIMED_OUT));
      try {
        return await post(credentials, AbortSignal.any([abort.signal, signal]));
      } catch (error) {
        return describeFailure(error, config.requestTimeoutMs);
      } finally {
        cancelTimeout();
      }
    },
    async close() {
      await pool?.destroy();
    },
  };
}

function grantForm(config: CredentialConfig, proof: Readonly<Record<string, string>>): URLSearchParams {
  const form = new URLSearchParams({ grant_type: 'client_credentials', ...proof });
  if (config.scope !== undefined) form.set('scope', config.scope);
  if (config.audience !== undefined) form.set('audience', config.audience);
  for (const [name, value] of Object.entries(config.parameters)) {
    for (const one of typeof value === 'string' ? [value] : value) form.append(name, one);
  }
  return form;
}

function describeFailure(error: unknown, timeoutMs: number): RefusedGrant {
  if (error === TIMED_OUT) return { result: 'unavailable', detail: `no whole answer within ${timeoutMs} ms` };
  if (error instanceof errors.ResponseExceededMaxSizeError) {
    return { result: 'invalid_response', detail: `an answer of more than ${MAX_RESPONSE_BYTES} bytes` };
  }
  if (error instanceof errors.HTTPParserError) {
    return { result: 'invalid_response', detail: `not an HTTP answer (${error.code})` };
  }
  const code = systemCodeOf(error);
  // A library's message may quote what it was parsing; its code cannot.
  return {
    result: 'unavailable',
    detail: code ?? (error instanceof TlsFileError ? error.message : 'unknown error'),
  };
}

interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

class TlsFileError extends Error {}

async function readTlsMaterial(tls: TlsConfig): Promise<TlsMaterial> {
  return {
    ...(tls.caFile === undefined ? {} : { ca: await readPem(tls.caFile) }),
    ...(tls.certFile === undefined ? {} : { cert: await readPem(tls.certFile) }),
    ...(tls.keyFile === undefined ? {} : { key: await readPem(tls.keyFile) }),
    ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
  };
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new TlsFileError(`${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

function sameMaterial(a: TlsMaterial, b: TlsMaterial): boolean {
  return a.ca === b.ca && a.cert === b.cert && a.key === b.key;
}

function single(field: string | string[] | undefined): string | undefined {
  return typeof field === 'string' ? field : field?.[0];
}
