/** What every step needs: whom it may ask, and for how long. */

import type { LookupFunction } from 'node:net';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { EgressFailure } from '../token/egress/egress-tunnel.ts';

export interface Examination {
  readonly clock: Clock;
  /** Aborts when the time for all steps is up: anything open is closed. */
  readonly signal: AbortSignal;
  /** Examine only configuration and files, without any requests. */
  readonly isOffline: boolean;
  /** Set if hosts are captured: the pod's hosts file leads their names to the sidecar. */
  readonly lookup?: LookupFunction;
}

/** An answer that did not come in time. The message may be shown. */
class TooLate extends Error {}

/**
 * The outcome of `begun`, if it comes in time. Otherwise `abandon` ends what is still going on.
 * @throws {TooLate} after `withinMs`, or once the examination's time is up.
 */
export async function inTime<T>(
  begun: Promise<T>,
  { clock, signal }: Pick<Examination, 'clock' | 'signal'>,
  withinMs: number,
  abandon: () => void = () => undefined,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const giveUp = (message: string) => {
    late.reject(new TooLate(message));
    abandon();
  };
  const cancel = clock.after(withinMs, () => giveUp(`no answer within ${withinMs} ms`));
  const onAbort = () => giveUp('the time for all steps is up');
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([begun, late.promise]);
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}

/** The name of egress errors, whose code is loaded only where it is used. */
const EGRESS_FAILURE: EgressFailure['name'] = 'EgressFailure';

/** The system's code if there is one: a library's message may quote its input. */
export function wordsFor(error: unknown): string {
  if (error instanceof TooLate) return error.message;
  if (error instanceof Error && error.name === EGRESS_FAILURE) return error.message;
  return systemCodeOf(error) ?? messageOf(error);
}
