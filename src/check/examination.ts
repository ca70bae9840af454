/** What every step works with: whom it may ask, and how long. */

import type { LookupFunction } from 'node:net';
import type { Clock } from '../clock.ts';
import type { EgressFailure } from '../egress/egress-tunnel.ts';
import { messageOf, systemCodeOf } from '../errors.ts';

export interface Examination {
  readonly clock: Clock;
  /** Aborts when the time for all steps is up: whatever is open is closed. */
  readonly signal: AbortSignal;
  /** Look at configuration and files alone; ask nobody. */
  readonly isOffline: boolean;
  /** Where hosts are captured: their names lead to the sidecar in the pod's hosts file. */
  readonly lookup?: LookupFunction;
}

/** What did not come in time. The message may be shown. */
export class TooLate extends Error {}

/**
 * The outcome of `begun`, if it comes in time. What goes on beyond that is `abandon`'s to end.
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

/** The name of errors of the way out, whose code is loaded where it is used. */
const EGRESS_FAILURE: EgressFailure['name'] = 'EgressFailure';

/** The system's code where there is one: a library's message may quote what it was given. */
export function wordsFor(error: unknown): string {
  if (error instanceof TooLate) return error.message;
  if (error instanceof Error && error.name === EGRESS_FAILURE) return error.message;
  return systemCodeOf(error) ?? messageOf(error);
}
