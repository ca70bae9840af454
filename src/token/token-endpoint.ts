/** The realm's token endpoint, as a client sees it: one POST, one verdict. */

// Not through undici's entry point: that also loads fetch, WebSocket and caches, at 10 MB and 100 ms in every pod.
import requestThrough from 'undici/lib/api/api-request.js';
import errors from 'undici/lib/core/errors.js';
import type { Clock } from '../clock.ts';
import type { CredentialConfig } from '../config/config.ts';
import { systemCodeOf } from '../errors.ts';
import { proveClient } from './client-authentication.ts';
import type { ClientCredentials } from './client-credentials.ts';
import { providerConnections } from './provider-connections.ts';
import { type RefusedGrant, readTokenResponse, type TokenResponse } from './token-response.ts';
import { UnusableFile } from './unusable-file.ts';

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
  const connections = providerConnections({
    origin: url.origin,
    tls: config.tls,
    connectTimeoutMs: config.requestTimeoutMs,
    maxResponseBytes: MAX_RESPONSE_BYTES,
  });

  async function post(credentials: ClientCredentials, signal: AbortSignal): Promise<TokenResponse> {
    const pool = await connections.with(credentials);
    const proof = await proveClient(credentials, clock);
    const { statusCode, headers, body } = await requestThrough.call(pool, {
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
    close: connections.close,
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
    detail: code ?? (error instanceof UnusableFile ? error.message : 'unknown error'),
  };
}

function single(field: string | string[] | undefined): string | undefined {
  return typeof field === 'string' ? field : field?.[0];
}
