import type { ServerResponse } from 'node:http';
import { FairRing } from '../limits/fair-queue.ts';

/** Resolves to false if the caller leaves first. @param address the caller's. */
type AnswersInTurn = (response: ServerResponse, address: string) => Promise<boolean>;

/**
 * Begins one answer per turn of the event loop, fairly by address. Node accepts one connection a turn, so a crowd would
 * delay it for seconds (docs/decisions/0033).
 */
export function answersInTurn(): AnswersInTurn {
  const waiting = new FairRing<() => void>();
  let hasBegun = false;

  function beginNext(): void {
    const begin = waiting.next();
    hasBegun = begin !== undefined;
    if (begin === undefined) return;
    setImmediate(beginNext);
    begin();
  }

  return (response, address) => {
    if (!hasBegun) {
      hasBegun = true;
      setImmediate(beginNext);
      return Promise.resolve(true);
    }
    const { socket } = response.req;
    return new Promise((resolve) => {
      const onClose = (): void => {
        waiting.remove(address, begin);
        resolve(false);
      };
      const begin = (): void => {
        socket.off('close', onClose);
        resolve(true);
      };
      waiting.add(address, begin);
      // Older Nodes do not tell a waiting response.
      socket.once('close', onClose);
    });
  };
}
