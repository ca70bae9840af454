import {
  type CountedErrorCode,
  ERRORS,
  type ErrorCode,
  messageOf,
  type ProxyErrorCode,
  SidecarError,
} from '../errors.ts';
import type { GrpcStatus } from '../grpc-status.ts';
import type { Logger } from '../log/logger.ts';

/** Anything thrown as an error that the proxy may answer; what was not foreseen shows nothing of itself. */
export function asProxyError(error: unknown): SidecarError<ProxyErrorCode> {
  if (error instanceof SidecarError && 'status' in ERRORS[error.code as ErrorCode]) {
    return error as SidecarError<ProxyErrorCode>;
  }
  return new SidecarError('internal', 'an unexpected error in the sidecar', { cause: error });
}

/** What was not served, be it a request or not, and why, without anything of a request itself. */
export function logFailure(log: Logger, route: string, error: SidecarError<CountedErrorCode>): void {
  log.warn({ route, ...reasonOf(error) }, 'request not completed');
}

/** Of a request that was not served: where it went and how long it took. No path, no query, no field. */
export interface FailedRequest {
  readonly route: string;
  readonly upstream: string | undefined;
  readonly method: string;
  /** That the app got. */
  readonly status: number;
  /** The same of a gRPC call that was refused. */
  readonly grpcStatus?: GrpcStatus | undefined;
  readonly durationMs: number;
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
}

/** Methods are the client's choice of words. Characters. */
const LONGEST_METHOD = 32;

export function shownMethod(method: string): string {
  return method.slice(0, LONGEST_METHOD);
}

/** The same of a request. Lines of one route and error are limited, and those left out are counted. */
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
