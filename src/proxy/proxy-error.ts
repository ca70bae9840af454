import {
  type CountedErrorCode,
  ERRORS,
  type ErrorCode,
  messageOf,
  type ProxyErrorCode,
  SidecarError,
} from '../errors.ts';
import type { Logger } from '../log/logger.ts';

/** Anything thrown as an error that the proxy may answer; what was not foreseen shows nothing of itself. */
export function asProxyError(error: unknown): SidecarError<ProxyErrorCode> {
  if (error instanceof SidecarError && 'status' in ERRORS[error.code as ErrorCode]) {
    return error as SidecarError<ProxyErrorCode>;
  }
  return new SidecarError('internal', 'an unexpected error in the sidecar', { cause: error });
}

/** A request that was not served, and why, without anything of the request itself. */
export function logFailure(log: Logger, route: string, error: SidecarError<CountedErrorCode>): void {
  const cause = error.cause === undefined ? undefined : messageOf(error.cause);
  log.warn({ route, error: error.code, reason: error.message, cause }, 'request not completed');
}
