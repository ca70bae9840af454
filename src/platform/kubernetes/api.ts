import { SidecarError } from '../errors.ts';

export interface KubernetesApi {
  /**
   * @param path such as `/api/v1/namespaces/default/secrets/shop`.
   * @throws {KubernetesApiError} unless the answer is 2xx.
   */
  request<T>(method: ApiMethod, path: string, options?: ApiRequestOptions): Promise<T>;
  /**
   * Resolves when `signal` aborts, when the server ends the stream, or after two and a half silent minutes.
   * @throws {KubernetesApiError} if it cannot be opened or breaks off.
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
  readonly signal?: AbortSignal;
  /** Quote the answer in the error. Only if it holds no secret. */
  readonly explainRefusal?: boolean;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: unknown;
}

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

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

/** Holds no body unless `explainRefusal` is set: it may be a Secret. */
export class KubernetesApiError extends SidecarError<'kubernetes_api'> {
  /** Undefined without an answer. */
  readonly status: number | undefined;
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
