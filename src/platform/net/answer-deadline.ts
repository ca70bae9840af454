import type { ServerResponse } from 'node:http';
import type { Clock } from '../time/clock.ts';

/**
 * Ends the connection unless the last byte of the answer has left in time. A reader that takes a few bytes now and then is never
 * idle: no timeout of Node's ends it.
 */
export function endUnlessAnswered(response: ServerResponse, withinMs: number, clock: Clock): void {
  // The response lets go of its socket when it ends.
  const { socket } = response.req;
  response.once(
    'close',
    clock.after(withinMs, () => socket.destroy()),
  );
}
