import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import { TokenUnavailable } from '../../token/bearer-source.ts';
import { CallerHeldBack } from './authorizer.ts';

/** When a retry may help, in whole seconds; undefined if unknown. */
export function retryAfterSeconds(error: SidecarError<ProxyErrorCode>): number | undefined {
  if (error instanceof TokenUnavailable || error instanceof CallerHeldBack) return error.retryAfterSeconds;
  return error.code === 'overloaded' ? 1 : undefined;
}
