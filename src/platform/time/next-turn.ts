/** The event loop's turns: long work lets requests be served between its parts. */

import { setImmediate as nextTurn } from 'node:timers/promises';

export { nextTurn };

/** A pause after every so many steps. @param steps done in one turn of the event loop. */
export function pauseEvery(steps: number): () => Promise<void> | undefined {
  let done = 0;
  return () => (++done % steps === 0 ? nextTurn() : undefined);
}
