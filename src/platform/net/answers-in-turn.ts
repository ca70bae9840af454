import type { ServerResponse } from 'node:http';

/** Resolves to whether it is this answer's turn: false if its caller leaves before. @param address its caller's. */
export type AnswersInTurn = (response: ServerResponse, address: string) => Promise<boolean>;

/**
 * Has one answer of a server begin in each turn of the event loop, of one address after the other. Node accepts a single
 * connection in a turn: with a crowd answered in each, whoever connects would wait for seconds (docs/decisions/0034).
 */
export function answersInTurn(): AnswersInTurn {
  /** By address, the one whose turn is next first. */
  const lines = new Map<string, Set<() => void>>();
  let hasBegun = false;

  function beginNext(): void {
    const [next] = lines;
    hasBegun = next !== undefined;
    if (next === undefined) return;
    setImmediate(beginNext);
    const [address, line] = next;
    const [begin] = line;
    // It goes to the end.
    leave(address, line, begin as () => void);
    if (line.size > 0) {
      lines.delete(address);
      lines.set(address, line);
    }
    begin?.();
  }

  function leave(address: string, line: Set<() => void>, begin: () => void): void {
    line.delete(begin);
    if (line.size === 0) lines.delete(address);
  }

  return (response, address) => {
    if (!hasBegun) {
      hasBegun = true;
      setImmediate(beginNext);
      return Promise.resolve(true);
    }
    const { socket } = response.req;
    return new Promise((resolve) => {
      const line = lines.get(address) ?? new Set();
      lines.set(address, line);
      const onClose = (): void => {
        leave(address, line, begin);
        resolve(false);
      };
      const begin = (): void => {
        socket.off('close', onClose);
        resolve(true);
      };
      line.add(begin);
      // Older Nodes do not tell an answer that waits behind another of it.
      socket.once('close', onClose);
    });
  };
}
