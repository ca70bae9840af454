import {
  type CountedErrorCode,
  ERRORS,
  type ErrorCode,
  messageOf,
  type ProxyErrorCode,
  SidecarError,
} from '../platform/errors.ts';
import type { GrpcStatus } from '../platform/grpc-status.ts';
import type { Logger } from '../platform/log/logger.ts';

/** Turns anything thrown into an error that the proxy may answer; an unforeseen one shows none of its details. */
export function asProxyError(error: unknown): SidecarError<ProxyErrorCode> {
  if (error instanceof SidecarError && 'status' in ERRORS[error.code as ErrorCode]) {
    return error as SidecarError<ProxyErrorCode>;
  }
  return new SidecarError('internal', 'an unexpected error in the sidecar', { cause: error });
}

/** Logs what was not served, a request or not, and why, without quoting anything of a request. */
export function logFailure(log: Logger, route: string, error: SidecarError<CountedErrorCode>): void {
  log.warn({ route, ...reasonOf(error) }, 'request not completed');
}

/** A request that was not served: where it went and how long it took. No path, no query, no field. */
export interface FailedRequest {
  readonly route: string;
  readonly upstream: string | undefined;
  readonly method: string;
  /** What the app got. */
  readonly status: number;
  /** What the app got as the outcome of a refused gRPC call. */
  readonly grpcStatus?: GrpcStatus | undefined;
  readonly durationMs: number;
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
}

/** Clients may send any method. Characters. */
const MAX_METHOD_LENGTH = 32;

export function shownMethod(method: string): string {
  return method.slice(0, MAX_METHOD_LENGTH);
}

/** Logs a request that was not served. Lines of one route and error are limited, and those left out are counted. */
export function logFailedRequest(
  log: Logger,
  { route, method, ...rest }: FailedRequest,
  error: SidecarError<CountedErrorCode>,
): void {
  log.warn({ route, method: shownMethod(method), ...rest, ...reasonOf(error) }, 'request not completed');
}

function reasonOf(error: SidecarError<CountedErrorCode>): Readonly<Record<string, string | undefined>> {
  const cause = error.cause === undefined ? undefined : messageOf(error.cause);
  return { error: error.code, reason: error.message, cause };
}
