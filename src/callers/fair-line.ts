/** Limits work under way: the rest waits in line, taking turns between the parties that it is done for. */

import type { Clock } from '../platform/time/clock.ts';

export interface FairLineLimits {
  readonly atOnce: number;
  /** Total in line. */
  readonly mostWaiting: number;
  /** In line for one party. */
  readonly mostWaitingOfOne: number;
  readonly patienceMs: number;
}

interface FairLine {
  /**
   * Resolves with the function that ends this work once its turn comes; with undefined if the line is full, or its turn
   * does not come in time.
   * @param of the party that the work is for.
   */
  enter(of: string): Promise<(() => void) | undefined>;
  readonly waiting: number;
}

type Waiting = (isItsTurn: boolean) => void;

export function createFairLine(clock: Clock, limits: FairLineLimits): FairLine {
  /** In order of turns: a party goes to the end when its work begins. */
  const lines = new Map<string, Set<Waiting>>();
  let underWay = 0;
  let waiting = 0;

  function leave(): void {
    const next = lines.entries().next().value;
    if (next === undefined) {
      underWay--;
      return;
    }
    const [of, line] = next;
    const [first] = line as Set<Waiting> & Iterable<Waiting>;
    lines.delete(of);
    if (line.size > 1) lines.set(of, line);
    (first as Waiting)(true);
  }

  function wait(of: string): Promise<boolean> {
    const line = lines.get(of) ?? new Set();
    if (waiting >= limits.mostWaiting || line.size >= limits.mostWaitingOfOne) return Promise.resolve(false);
    lines.set(of, line);
    waiting++;
    return new Promise((resolve) => {
      const cancel = clock.after(limits.patienceMs, () => settle(false));
      function settle(isItsTurn: boolean): void {
        cancel();
        waiting--;
        line.delete(settle);
        if (line.size === 0 && lines.get(of) === line) lines.delete(of);
        resolve(isItsTurn);
      }
      line.add(settle);
    });
  }

  return {
    async enter(of) {
      if (underWay < limits.atOnce) underWay++;
      else if (!(await wait(of))) return undefined;
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        leave();
      };
    },
    get waiting() {
      return waiting;
    },
  };
}
