/** Turns and places, shared fairly among parties. */

import type { Clock } from '../time/clock.ts';

/** Undefined if parties are not told apart. */
type Party = string | undefined;

export class FairRing<E> {
  readonly #lines = new Map<Party, Set<E>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  sizeOf(party: Party): number {
    return this.#lines.get(party)?.size ?? 0;
  }

  /** @param entry not in it yet. */
  add(party: Party, entry: E): void {
    const line = this.#lines.get(party) ?? new Set();
    this.#lines.set(party, line.add(entry));
    this.#size++;
  }

  remove(party: Party, entry: E): void {
    const line = this.#lines.get(party);
    if (line?.delete(entry) !== true) return;
    this.#size--;
    if (line.size === 0) this.#lines.delete(party);
  }

  /** Takes the first entry of the first party that may have its turn. That party moves to the end. */
  next(may: (party: Party) => boolean = () => true): E | undefined {
    for (const [party, line] of this.#lines) {
      if (!may(party)) continue;
      const [first] = line;
      this.#lines.delete(party);
      this.#lines.set(party, line);
      this.remove(party, first as E);
      return first;
    }
    return undefined;
  }

  /** Of the party with the most, the oldest first. */
  most(): ReadonlySet<E> {
    let most: ReadonlySet<E> = new Set();
    for (const line of this.#lines.values()) if (line.size > most.size) most = line;
    return most;
  }

  /** Undefined unless that party has more than `than`. */
  newestOfMost(than: number): E | undefined {
    const most = this.most();
    return most.size > than ? [...most].at(-1) : undefined;
  }

  /** The newest of the party with the most, unless that one would have fewer than `party` afterwards. */
  toGiveWayFor(party: Party): E | undefined {
    return this.newestOfMost(this.sizeOf(party) + 1);
  }

  *[Symbol.iterator](): IterableIterator<E> {
    for (const line of this.#lines.values()) yield* line;
  }
}

export interface FairQueueLimits {
  readonly atOnce: number;
  /** How many of `atOnce` one party can't have alone. Default 0. */
  readonly spared?: number;
  /** A full queue drops the newest entry of the party with the most for one with fewer. */
  readonly mostWaiting: number;
  readonly timeoutMs: number;
}

export type Turn = 'come' | 'left' | 'too_late' | 'crowded_out';

export interface Place {
  readonly turn: Promise<Turn>;
  /** @returns false if its turn has come. */
  leave(): boolean;
  /** Ends the work of this turn. Safe to call again. */
  end(): void;
}

type Waiting = (turn: Turn) => void;

export class FairQueue {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #limits: FairQueueLimits;
  readonly #waiting = new FairRing<Waiting>();
  readonly #runningOf = new Map<Party, number>();
  #running = 0;

  constructor(clock: Pick<Clock, 'after'>, limits: FairQueueLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  enter(party?: Party): Place {
    const { promise: turn, resolve } = Promise.withResolvers<Turn>();
    let stage: 'waiting' | 'running' | 'over' = 'waiting';
    let cancel: (() => void) | undefined;
    const settle: Waiting = (how) => {
      cancel?.();
      this.#waiting.remove(party, settle);
      stage = how === 'come' ? 'running' : 'over';
      if (how === 'come') this.#count(party, 1);
      resolve(how);
    };
    if (this.#mayRun(party)) settle('come');
    else if (!this.#makesRoom(party)) settle('crowded_out');
    else {
      this.#waiting.add(party, settle);
      cancel = this.#clock.after(this.#limits.timeoutMs, () => settle('too_late'));
    }
    return {
      turn,
      leave() {
        if (stage !== 'waiting') return false;
        settle('left');
        return true;
      },
      end: () => {
        if (stage !== 'running') return;
        stage = 'over';
        this.#count(party, -1);
        this.#waiting.next((next) => this.#mayRun(next))?.('come');
      },
    };
  }

  #mayRun(party: Party): boolean {
    const { atOnce, spared = 0 } = this.#limits;
    const most = party === undefined ? atOnce : atOnce - spared;
    return this.#running < atOnce && (this.#runningOf.get(party) ?? 0) < most;
  }

  #makesRoom(party: Party): boolean {
    if (this.#waiting.size < this.#limits.mostWaiting) return true;
    const newest = this.#waiting.toGiveWayFor(party);
    newest?.('crowded_out');
    return newest !== undefined;
  }

  #count(party: Party, change: 1 | -1): void {
    this.#running += change;
    const count = (this.#runningOf.get(party) ?? 0) + change;
    if (count === 0) this.#runningOf.delete(party);
    else this.#runningOf.set(party, count);
  }
}

/** So many places. Where all are taken, the party with the most loses its newest to one with fewer. */
export class FairPlaces {
  readonly #most: number;
  readonly #taken = new FairRing<() => void>();

  constructor(most: number) {
    this.#most = most;
  }

  /** @returns undefined if there is no place, or is none any more: what was begun goes on, for whoever else waits for it. */
  async during<T>(party: string, begin: () => Promise<T>): Promise<T | undefined> {
    if (!this.#makesRoom(party)) return undefined;
    const { promise: crowdedOut, resolve } = Promise.withResolvers<undefined>();
    const giveWay = (): void => {
      this.#taken.remove(party, giveWay);
      resolve(undefined);
    };
    this.#taken.add(party, giveWay);
    return await Promise.race([begin(), crowdedOut]).finally(giveWay);
  }

  #makesRoom(party: string): boolean {
    if (this.#taken.size < this.#most) return true;
    const newest = this.#taken.toGiveWayFor(party);
    newest?.();
    return newest !== undefined;
  }
}
