/** Work of which only so much is done at once: the rest waits in line, in turns between those it is done for. */

import type { Clock } from '../clock.ts';

export interface FairLineLimits {
  readonly atOnce: number;
  /** Waiting, of all together. */
  readonly mostWaiting: number;
  /** Waiting, of each of those it is done for. */
  readonly mostWaitingOfOne: number;
  readonly patienceMs: number;
}

export interface FairLine {
  /**
   * Resolves once it is the turn of this work, with the function that ends it; with undefined where there is no room in
   * the line, or its turn has not come in time.
   * @param of whom it is done for.
   */
  enter(of: string): Promise<(() => void) | undefined>;
  readonly waiting: number;
}

type Waiting = (isItsTurn: boolean) => void;

export function createFairLine(clock: Clock, limits: FairLineLimits): FairLine {
  /** In the order of their turns: whoever's work begins goes to the end. */
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
