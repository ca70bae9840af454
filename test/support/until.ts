import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';

/** What is near at hand is there after this many turns of the event loop. */
const NEAR_TURNS = 20;

/**
 * Waits until the condition holds, for states without an event. Vitest's timeout is the bound. It looks again in each
 * of the next turns, and then each millisecond, so that those who are waited for have the processor.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let looks = 0; !(await condition()); looks++) {
    await (looks < NEAR_TURNS ? turn() : pause(1));
  }
}
