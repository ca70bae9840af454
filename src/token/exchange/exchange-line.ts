/** Exchanges of which so many are under way at once: the rest waits in line, and may leave it. */

import type { Clock } from '../../clock.ts';

export interface ExchangeLineLimits {
  readonly atOnce: number;
  readonly patienceMs: number;
}

/** Why the wait for its turn has ended. */
export type Turn = 'come' | 'left' | 'too_late';

export interface Place {
  readonly turn: Promise<Turn>;
  /** Leaves the line, if its turn has not come. @returns whether it has left. */
  leave(): boolean;
  /** What began when its turn came has ended. */
  end(): void;
}

export class ExchangeLine {
  readonly #clock: Clock;
  readonly #limits: ExchangeLineLimits;
  readonly #waiting = new Set<(turn: Turn) => void>();
  #underWay = 0;

  constructor(clock: Clock, limits: ExchangeLineLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  enter(): Place {
    const { promise: turn, resolve } = Promise.withResolvers<Turn>();
    let stage: 'waiting' | 'begun' | 'over' = 'waiting';
    let cancel: (() => void) | undefined;
    const settle = (how: Turn): void => {
      cancel?.();
      this.#waiting.delete(settle);
      stage = how === 'come' ? 'begun' : 'over';
      if (how === 'come') this.#underWay += 1;
      resolve(how);
    };
    if (this.#underWay < this.#limits.atOnce) settle('come');
    else {
      this.#waiting.add(settle);
      cancel = this.#clock.after(this.#limits.patienceMs, () => settle('too_late'));
    }
    return {
      turn,
      leave() {
        if (stage !== 'waiting') return false;
        settle('left');
        return true;
      },
      end: () => {
        if (stage !== 'begun') return;
        stage = 'over';
        this.#underWay -= 1;
        const [next] = this.#waiting;
        next?.('come');
      },
    };
  }
}
