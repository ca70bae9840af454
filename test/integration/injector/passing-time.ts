import { setTimeout as real } from 'node:timers/promises';
import type { ManualClock } from '../../support/manual-clock.ts';

/**
 * Lets time pass until `condition` holds: a second of the manual clock, or `stepMs`, for each two milliseconds of the real one, so
 * that answers under way arrive before timers that wait for them run out. A condition that never holds ends with the
 * test's timeout.
 */
export async function passUntil(clock: ManualClock, condition: () => boolean, stepMs = 1000): Promise<void> {
  while (!condition()) {
    await real(2);
    if (!condition()) await clock.advance(stepMs);
  }
}
