import type { LookupAddress } from 'node:dns';
import type { Socket } from 'node:net';
import { systemCodeOf } from '../errors.ts';
import type { Clock } from '../time/clock.ts';

/** From one attempt to the next, as a rule (RFC 8305 §5, Connection Attempt Delay). */
export const ATTEMPT_DELAY_MS = 250;

interface RaceOptions {
  /** At least one, in the order in which they are tried. */
  readonly addresses: readonly LookupAddress[];
  /** From one attempt to the next. */
  readonly delayMs: number;
  /** Begins a connection to one of them. */
  readonly connect: (address: LookupAddress) => Socket;
  readonly clock: Clock;
  /** Called in the winner's `connect` event, when nothing has been read of it. */
  readonly onWon: (winner: Socket, address: LookupAddress) => void;
  /** Every attempt failed. */
  readonly onLost: (error: Error) => void;
}

/**
 * Connects to the first address that answers (RFC 8305 §5). An attempt that takes long goes on beside the next one; one
 * that fails is followed at once. The first to stand wins, and the others are destroyed.
 * @returns gives up every attempt.
 */
export function race({ addresses, delayMs, connect, clock, onWon, onLost }: RaceOptions): () => void {
  const attempts = new Set<Socket>();
  const errors: Error[] = [];
  let next = 0;
  let cancelNext = (): void => {};

  function end(): void {
    cancelNext();
    next = addresses.length;
    for (const attempt of attempts) attempt.destroy();
    attempts.clear();
  }

  function begin(): void {
    cancelNext();
    const address = addresses[next++];
    if (address === undefined) return;
    const attempt = connect(address);
    attempts.add(attempt);
    attempt.once('connect', () => {
      attempts.delete(attempt);
      end();
      onWon(attempt, address);
    });
    attempt.on('error', (error) => {
      // Of one that was given up, nothing counts.
      if (!attempts.delete(attempt)) return;
      errors.push(error);
      if (next < addresses.length) begin();
      else if (attempts.size === 0) onLost(allOf(errors));
    });
    if (next < addresses.length) cancelNext = clock.after(delayMs, begin);
  }

  begin();
  return end;
}

/** One error for all, with the code of the first, as Node makes it. */
function allOf(errors: readonly Error[]): Error {
  const reasons = errors.map(({ message }) => message).join('; ');
  return Object.assign(new AggregateError(errors, reasons), { code: systemCodeOf(errors[0]) });
}
