/**
 * Runs a limited number of exchanges at once. The rest wait in line, take turns between callers, and may leave. Where
 * callers are not told apart, one has all of the room.
 */

import type { Clock } from '../../platform/time/clock.ts';

interface ExchangeLineLimits {
  /** More than one. */
  readonly atOnce: number;
  readonly mostWaiting: number;
  readonly patienceMs: number;
}

/** How the wait for a turn ended. */
export type Turn = 'come' | 'left' | 'too_late' | 'crowded_out';

export interface Place {
  readonly turn: Promise<Turn>;
  /** Leaves the line, if its turn has not come. @returns whether it has left. */
  leave(): boolean;
  /** Frees the place: the exchange that began at this turn is over. */
  end(): void;
}

type Waiting = (turn: Turn) => void;

export class ExchangeLine {
  readonly #clock: Clock;
  readonly #limits: ExchangeLineLimits;
  /** In the order of their turns: a caller goes to the end when one of its exchanges begins. */
  readonly #lines = new Map<string | undefined, Set<Waiting>>();
  /** Exchanges under way, by caller. */
  readonly #of = new Map<string | undefined, number>();
  #waiting = 0;
  #underWay = 0;

  constructor(clock: Clock, limits: ExchangeLineLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** @param of the caller; undefined where callers are not told apart. */
  enter(of?: string): Place {
    const { promise: turn, resolve } = Promise.withResolvers<Turn>();
    let stage: 'waiting' | 'begun' | 'over' = 'waiting';
    let cancel: (() => void) | undefined;
    const settle: Waiting = (how) => {
      cancel?.();
      this.#remove(of, settle);
      stage = how === 'come' ? 'begun' : 'over';
      if (how === 'come') this.#count(of, 1);
      resolve(how);
    };
    if (this.#mayBegin(of)) settle('come');
    else if (!this.#makeRoom(of)) settle('crowded_out');
    else {
      this.#add(of, settle);
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
        this.#count(of, -1);
        this.#beginNext();
      },
    };
  }

  /** A caller never takes the last place if it has all the others. */
  #mayBegin(of: string | undefined): boolean {
    const places = of === undefined ? this.#limits.atOnce : this.#limits.atOnce - 1;
    return this.#underWay < this.#limits.atOnce && (this.#of.get(of) ?? 0) < places;
  }

  #beginNext(): void {
    for (const [of, line] of this.#lines) {
      if (!this.#mayBegin(of)) continue;
      this.#lines.delete(of);
      this.#lines.set(of, line);
      const [first] = line;
      first?.('come');
      return;
    }
  }

  /** If the line is full, the caller with the most in it loses its latest entry to a caller with fewer. */
  #makeRoom(of: string | undefined): boolean {
    if (this.#waiting < this.#limits.mostWaiting) return true;
    let longest: Set<Waiting> = new Set();
    for (const line of this.#lines.values()) if (line.size > longest.size) longest = line;
    if ((this.#lines.get(of)?.size ?? 0) + 1 >= longest.size) return false;
    [...longest].at(-1)?.('crowded_out');
    return true;
  }

  #add(of: string | undefined, waiting: Waiting): void {
    const line = this.#lines.get(of) ?? new Set();
    this.#lines.set(of, line.add(waiting));
    this.#waiting += 1;
  }

  #remove(of: string | undefined, waiting: Waiting): void {
    const line = this.#lines.get(of);
    if (line?.delete(waiting) !== true) return;
    this.#waiting -= 1;
    if (line.size === 0) this.#lines.delete(of);
  }

  #count(of: string | undefined, change: 1 | -1): void {
    this.#underWay += change;
    const count = (this.#of.get(of) ?? 0) + change;
    if (count === 0) this.#of.delete(of);
    else this.#of.set(of, count);
  }
}
