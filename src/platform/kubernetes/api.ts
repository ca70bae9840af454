/** What the program needs of the Kubernetes API, without saying how it is reached. */

import { SidecarError } from '../errors.ts';

export interface KubernetesApi {
  /**
   * The decoded answer of one request.
   * @param path from the root, such as `/api/v1/namespaces/default/secrets/shop`.
   * @throws {KubernetesApiError} for any other status than 2xx, and when there is no answer.
   */
  request<T>(method: ApiMethod, path: string, options?: ApiRequestOptions): Promise<T>;
  /**
   * Streams the changes of a collection until they end or `signal` aborts. Resolves when the server ends the stream or
   * when nothing has come for two and a half minutes.
   * @throws {KubernetesApiError} when it cannot be opened or breaks off.
   */
  watch(path: string, query: Query, onEvent: (event: WatchEvent) => void, signal: AbortSignal): Promise<void>;
}

export type ApiMethod = 'GET' | 'POST' | 'PUT' | 'PATCH';

export type Query = Readonly<Record<string, string | number | boolean>>;

export interface ApiRequestOptions {
  readonly query?: Query;
  readonly body?: object;
  /** Default `application/json`. */
  readonly contentType?: string;
  readonly accept?: string;
  /** Default 10 s. */
  readonly timeoutMs?: number;
  /** Gives the request up. */
  readonly signal?: AbortSignal;
  /** Put the server's own words into the error. Only for requests whose answers hold nothing secret. */
  readonly explainRefusal?: boolean;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: unknown;
}

/** As much as every object of the API has. */
export interface ApiObject {
  readonly metadata: ObjectMetadata;
}

interface ObjectMetadata {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** In the metadata of an object: what it belongs to. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

/** The API refused, or could not be reached. Its message holds no body unless asked for: bodies may be Secrets. */
export class KubernetesApiError extends SidecarError<'kubernetes_api'> {
  /** Undefined when there was no answer. */
  readonly status: number | undefined;
  /** What the server asked to wait. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, status?: number, options: { cause?: unknown; retryAfterMs?: number } = {}) {
    super('kubernetes_api', message, options.cause === undefined ? {} : { cause: options.cause });
    this.status = status;
    this.retryAfterMs = options.retryAfterMs;
  }
}

export function statusOf(error: unknown): number | undefined {
  return error instanceof KubernetesApiError ? error.status : undefined;
}
