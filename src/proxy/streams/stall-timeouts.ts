/**
 * What a request gets that stalls, its upload above all: after which of the route's times, in whose name, by which code;
 * the code's statuses, 408 and 504, are in the table of `src/platform/errors.ts`, the times by default in
 * `src/config/resolve-forwarding.ts`, and whether the connection ends with it in `../transaction/local-reply.ts`. The clock
 * that runs is set anew with each byte: `touch` in `../upstream/http1/connection.ts` and `../upstream/http2/carried-request.ts`.
 */

import type { RouteTimeouts } from '../../config/config.ts';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';

/** The times of a route that bound a stall. */
export type StallTimeouts = Pick<RouteTimeouts, 'responseMs' | 'idleMs'>;

/** Whether the request has been sent whole and not been answered: then the answer is due, and no byte gives more time. */
export function isAnswerDue(requestWhole: boolean, answered: boolean): boolean {
  return requestWhole && !answered;
}

/** How long nothing may move. */
export function stallTimeoutMs(
  { responseMs, idleMs }: StallTimeouts,
  requestWhole: boolean,
  answered: boolean,
): number {
  return isAnswerDue(requestWhole, answered) ? responseMs : idleMs;
}

/** Where a request stands in which nothing has moved, and whose answer is not due. */
interface Stalled {
  /** Its answer has begun. */
  readonly begun: boolean;
  /** Part of the answer waits for the app to read on. */
  readonly appIsBehind: boolean;
  /** The upstream has taken all that the app has sent. */
  readonly allTaken: boolean;
  /** The app sends its body after 100 (Continue), which has not come. */
  readonly awaitsContinue: boolean;
}

/** The error in the name of the side that stalled: 408 if it was the app, 504 if the upstream. */
export function stallError(
  { idleMs }: StallTimeouts,
  { begun, appIsBehind, allTaken, awaitsContinue }: Stalled,
): SidecarError<ProxyErrorCode> {
  const after = `for ${idleMs} ms`;
  if (begun && appIsBehind) {
    return new SidecarError('request_timeout', `the app read no more of the answer ${after}`);
  }
  if (!begun && allTaken && !awaitsContinue) {
    return new SidecarError('request_timeout', `the request body did not go on ${after}`);
  }
  return new SidecarError('upstream_timeout', `nothing moved ${after}`);
}
