/**
 * Imports only the configuration of @kubernetes/client-node: the whole would cost 50 MB (docs/decisions/0007). Import
 * this file lazily, so that an injector without the API does not load it.
 */

import {
  type HttpMethod,
  RequestContext,
  type ResponseContext,
} from '@kubernetes/client-node/dist/gen/http/http.js';
import { IsomorphicFetchHttpLibrary } from '@kubernetes/client-node/dist/gen/http/isomorphic-fetch.js';
import { systemCodeOf } from '../errors.ts';
import type { Clock } from '../time/clock.ts';
import {
  type ApiMethod,
  type ApiRequestOptions,
  type KubernetesApi,
  KubernetesApiError,
  type WatchEvent,
} from './api.ts';
import { loadConfiguration } from './configuration.ts';

/** The CA is read anew then. */
const RECONNECT_AFTER_MS = 300_000;

const REQUEST_TIMEOUT_MS = 10_000;

/** The server's bookmarks come about every minute. */
const SILENCE_MS = 150_000;

interface KubernetesClient extends KubernetesApi {
  readonly namespace: string | undefined;
}

type Dispatcher = NonNullable<ReturnType<RequestContext['getDispatcher']>>;
type Response = Awaited<ReturnType<ReturnType<IsomorphicFetchHttpLibrary['send']>['toPromise']>>;

/**
 * @param kubeconfig its path; by default the pod's service account.
 * @throws {SidecarError} `configuration` if neither leads to a server.
 */
export function connectKubernetes(kubeconfig: string | undefined, clock: Clock): KubernetesClient {
  const { config, server, tokenFile } = loadConfiguration(kubeconfig, clock);
  const http = new IsomorphicFetchHttpLibrary();
  let shared: { readonly dispatcher: Dispatcher; readonly sinceMs: number } | undefined;

  /** The client's own pool for each request would cost a TLS handshake each. */
  function keepConnections(request: RequestContext): void {
    const fresh = request.getDispatcher();
    if (fresh === undefined) return;
    const { monotonicMs } = clock.now();
    if (shared === undefined || monotonicMs - shared.sinceMs > RECONNECT_AFTER_MS) {
      shared = { dispatcher: fresh, sinceMs: monotonicMs };
    }
    request.setDispatcher(shared.dispatcher);
  }

  async function send(
    method: ApiMethod,
    path: string,
    { query = {}, body, contentType, accept, explainRefusal }: ApiRequestOptions,
    signal: AbortSignal,
  ): Promise<Response> {
    const url = new URL(server + path);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
    const request = new RequestContext(url.href, method as HttpMethod);
    request.setHeaderParam('Accept', accept ?? 'application/json');
    if (body !== undefined) {
      request.setHeaderParam('Content-Type', contentType ?? 'application/json');
      request.setBody(JSON.stringify(body));
    }
    request.setSignal(signal);
    try {
      await config.applySecurityAuthentication(request);
    } catch (error) {
      throw unusable(`${method} ${path}`, error);
    }
    refuseUnsendable(`${method} ${path}`, request);
    let response: Response;
    try {
      keepConnections(request);
      response = await http.send(request).toPromise();
    } catch (error) {
      throw unreachable(`${method} ${path}`, error);
    }
    if (response.httpStatusCode >= 200 && response.httpStatusCode <= 299) return response;
    if (response.httpStatusCode === 401) tokenFile?.refused();
    // Read to its end, so that the connection can be used again.
    const answer = await response.body.text().catch(() => '');
    throw refused(`${method} ${path}`, response, explainRefusal === true ? answer : '');
  }

  return {
    namespace: config.getContextObject(config.getCurrentContext())?.namespace,

    async request<T>(method: ApiMethod, path: string, options: ApiRequestOptions = {}): Promise<T> {
      const timeout = AbortSignal.timeout(options.timeoutMs ?? REQUEST_TIMEOUT_MS);
      const either = options.signal === undefined ? timeout : AbortSignal.any([timeout, options.signal]);
      const response = await send(method, path, options, either);
      const text = await response.body.text().catch((error: unknown) => {
        throw unreachable(`${method} ${path}`, error);
      });
      return parseResponse<T>(`${method} ${path}`, text);
    },

    async watch(path, query, onEvent, signal): Promise<void> {
      const silence = new AbortController();
      let cancel = clock.after(SILENCE_MS, () => silence.abort());
      try {
        const either = AbortSignal.any([signal, silence.signal]);
        const response = await send('GET', path, { query: { ...query, watch: true } }, either);
        for await (const line of readLines(response.body.stream())) {
          cancel();
          cancel = clock.after(SILENCE_MS, () => silence.abort());
          const { type, object } = parseResponse<WatchEvent>(`WATCH ${path}`, line);
          onEvent({ type, object });
        }
      } catch (error) {
        if (signal.aborted || silence.signal.aborted) return;
        throw error instanceof KubernetesApiError ? error : unreachable(`WATCH ${path}`, error);
      } finally {
        cancel();
      }
    },
  };
}

/** The parser's message would quote the answer, perhaps a Secret. */
function parseResponse<T>(what: string, text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new KubernetesApiError(`${what}: the answer is no JSON`);
  }
}

/** etcd's limit for an object is 1.5 MiB. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;

/**
 * Drops an unfinished last line.
 * @throws {RangeError} for a line that is too long.
 */
export async function* readLines(stream: AsyncIterable<Uint8Array> | null): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream ?? []) {
    const [first, ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    rest += first as string;
    for (const next of others) {
      if (rest !== '') yield rest;
      rest = next;
    }
    if (rest.length > MAX_LINE_BYTES) throw new RangeError('a line is too long');
  }
}

// Errors never hold a token that a library has quoted.

const MAX_RETRY_AFTER_SECONDS = 60;

const MAX_EXPLANATION = 1000;

function unreachable(what: string, error: unknown): KubernetesApiError {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = systemCodeOf(cause);
  if (code === undefined) return new KubernetesApiError(`${what}: ${wordsFor(cause)}`);
  return new KubernetesApiError(`${what}: ${code}`, undefined, quotesValues(code) ? {} : { cause });
}

/** Node quotes a value that it does not accept. */
const quotesValues = (code: string): boolean => code.startsWith('ERR_INVALID_');

/** fetch quotes a whole header that it refuses. */
function wordsFor(error: unknown): string {
  const { name } = (error ?? {}) as { readonly name?: unknown };
  if (name === 'TimeoutError') return 'no whole answer in time';
  const kind = error instanceof Error ? ` (${name})` : '';
  return fixedWordsOf(error) ?? `failed for no reason that the system has a code for${kind}`;
}

/** These messages quote nothing. */
const FIXED_WORDS: readonly string[] = [
  'a line is too long',
  'bad port',
  'unknown scheme',
  'HTTP protocol is not allowed when skipTLSVerify is not set or false',
  'No command was specified for exec authProvider!',
  'Unsupported proxy type',
];

function fixedWordsOf(error: unknown): string | undefined {
  const { message } = (error ?? {}) as { readonly message?: unknown };
  return FIXED_WORDS.find((words) => words === message);
}

/** Its cause, a plugin's or parser's message, may contain a token. */
function unusable(what: string, error: unknown): KubernetesApiError {
  const why = systemCodeOf(error) ?? fixedWordsOf(error);
  return new KubernetesApiError(
    `${what}: the kubeconfig or the service account cannot be used${why === undefined ? '' : `: ${why}`}`,
  );
}

/** RFC 9110 §5.5; fetch ignores the white space around it. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** @throws {KubernetesApiError} if a header has a line break, such as from a token pasted in two lines. */
function refuseUnsendable(what: string, request: RequestContext): void {
  for (const [name, value] of Object.entries(request.getHeaders())) {
    if (SENDABLE.test(value.trim())) continue;
    throw new KubernetesApiError(
      `${what}: ${name} cannot be sent: there is a line break, or another character that no header may have, in the token, password or user of the kubeconfig or the service account`,
    );
  }
}

/** Most often the release's permissions are too old. */
const REMEDY =
  '; upgrade the release, with the chart of this version, or grant it (docs/reference/injector.md, Permissions)';

export function refused(
  what: string,
  { httpStatusCode: status, headers }: ResponseContext,
  answer: string,
): KubernetesApiError {
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  const retry = seconds >= 0 ? { retryAfterMs: Math.min(seconds, MAX_RETRY_AFTER_SECONDS) * 1000 } : {};
  const why = answer === '' ? '' : `: ${messageOfStatus(answer).slice(0, MAX_EXPLANATION)}`;
  return new KubernetesApiError(
    `${what}: status ${status}${why}${status === 403 ? REMEDY : ''}`,
    status,
    retry,
  );
}

function messageOfStatus(answer: string): string {
  try {
    const { message } = JSON.parse(answer) as { message?: unknown };
    return typeof message === 'string' ? message : answer;
  } catch {
    return answer;
  }
}
