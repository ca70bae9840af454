/**
 * When a stalled request fails, and in whose name. Statuses, and whether the connection ends, are in `src/platform/errors.ts`,
 * default times in `src/config/resolve-forwarding.ts`. Each byte restarts the clock: `touch` in `../upstream/http1/connection.ts`
 * and `../upstream/http2/carried-request.ts`. It fires in `tooLate` of the first and of `../upstream/http2/stream.ts`, and
 * `../transaction/forwarding.ts` asks here what to answer. `src/cli/explain/explanations.ts` tells people which time it was.
 */

import type { RouteTimeouts } from '../../config/config.ts';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';

export type StallTimeouts = Pick<RouteTimeouts, 'responseMs' | 'idleMs'>;

/** If so, no byte gives more time. */
export function isResponseDue(requestComplete: boolean, answered: boolean): boolean {
  return requestComplete && !answered;
}

/** How long nothing may move. */
export function stallTimeoutMs(
  { responseMs, idleMs }: StallTimeouts,
  requestComplete: boolean,
  answered: boolean,
): number {
  return isResponseDue(requestComplete, answered) ? responseMs : idleMs;
}

/** A request whose answer is not due. */
interface Stalled {
  /** Whether the answer has begun. */
  readonly begun: boolean;
  /** The app has to read on. */
  readonly downstreamNeedsDrain: boolean;
  /** Whether the upstream has taken all that the app has sent. */
  readonly allTaken: boolean;
  /** Whether the app waits for 100 (Continue). */
  readonly awaitsContinue: boolean;
}

/** 408 if the app stalled, 504 if the upstream did. */
export function stallError(
  { idleMs }: StallTimeouts,
  { begun, downstreamNeedsDrain, allTaken, awaitsContinue }: Stalled,
): SidecarError<ProxyErrorCode> {
  const after = `for ${idleMs} ms`;
  if (begun && downstreamNeedsDrain) {
    return new SidecarError('request_timeout', `the app read no more of the answer ${after}`);
  }
  if (!begun && allTaken && !awaitsContinue) {
    return new SidecarError('request_timeout', `the request body did not go on ${after}`);
  }
  return new SidecarError('upstream_timeout', `nothing moved ${after}`);
}
