import type { ServerResponse } from 'node:http';
import { FairRing } from '../limits/fair-queue.ts';

/** Resolves to whether it is this answer's turn: false if its caller leaves before. @param address its caller's. */
type AnswersInTurn = (response: ServerResponse, address: string) => Promise<boolean>;

/**
 * Has one answer of a server begin in each turn of the event loop, of one address after the other. Node accepts a single
 * connection in a turn: with a crowd answered in each, whoever connects would wait for seconds (docs/decisions/0034).
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
      // Older Nodes do not tell an answer that waits behind another of it.
      socket.once('close', onClose);
    });
  };
}
