/** Names are looked up once for all who ask for them at the moment, and anew once there is an answer, or for long none. */

import type { LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type Clock, systemClock } from '../../clock.ts';
import { type Member, Members } from './members.ts';

export interface LookupBounds {
  /** Under way at once. */
  readonly atOnce: number;
  /** Of one name under way at once: the last of them is shared for as long as it takes. */
  readonly ofOne: number;
}

/**
 * The system's lookups cannot be taken back, and wait for threads of libuv that others need, too: the provider's name stands behind
 * these at the most.
 */
export const SYSTEM_BOUNDS: LookupBounds = { atOnce: 8, ofOne: 3 };

/**
 * DNS takes no thread, and a question that is lost is asked again within the lookup. No name waits for another: the configuration
 * says how many there are.
 */
export const DNS_BOUNDS: LookupBounds = { atOnce: Number.POSITIVE_INFINITY, ofOne: 1 };

/**
 * One that has taken longer is shared with nobody new, as far as there may be another: its question may be lost, which the system
 * finds out after seconds, while another one is answered at once.
 */
export const SHARED_MS = 1000;

type Told = Parameters<LookupFunction>[2];
type Answer = Parameters<Told>;

interface Waiting extends Member {
  readonly told: Told;
}

interface Lookup {
  readonly hostname: string;
  readonly options: LookupOptions;
  readonly waiting: Members<Waiting>;
  /** Infinite before it begins. */
  beganAtMs: number;
}

/** Lookups of one kind. Names come from outside, too; as many are remembered as are under way, or waited for. */
export class SharedLookups {
  readonly #lookup: LookupFunction;
  readonly #bounds: LookupBounds;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #underWay: Lookup[] = [];
  /** The longest first; each has somebody who waits for it. */
  readonly #inLine: Lookup[] = [];

  constructor(lookup: LookupFunction, bounds: LookupBounds, clock: Pick<Clock, 'monotonicMs'> = systemClock) {
    this.#lookup = lookup;
    this.#bounds = bounds;
    this.#clock = clock;
  }

  /**
   * Calls back with the answer to a lookup that is under way, or is begun now or as soon as others are over.
   * @param told is called in a turn of its own.
   * @returns leaves: nothing is kept of `told`, and it is not called any more.
   */
  ask(hostname: string, options: LookupOptions, told: Told): () => void {
    const waiting: Waiting = { told, place: 0 };
    const lookup = this.#lookupOf(hostname, options);
    lookup.waiting.add(waiting);
    return () => {
      lookup.waiting.delete(waiting);
      if (lookup.waiting.size > 0) return;
      const at = this.#inLine.indexOf(lookup);
      if (at !== -1) this.#inLine.splice(at, 1);
    };
  }

  #lookupOf(hostname: string, options: LookupOptions): Lookup {
    const isSame = (other: Lookup): boolean => asksTheSame(other, hostname, options);
    const inLine = this.#inLine.find(isSame);
    if (inLine !== undefined) return inLine;
    const underWay = this.#underWay.filter(isSame);
    const last = underWay.at(-1);
    if (last !== undefined && (underWay.length >= this.#bounds.ofOne || this.#isYoung(last))) return last;
    const lookup = {
      hostname,
      options,
      waiting: new Members<Waiting>(),
      beganAtMs: Number.POSITIVE_INFINITY,
    };
    if (this.#underWay.length < this.#bounds.atOnce) this.#begin(lookup);
    else this.#inLine.push(lookup);
    return lookup;
  }

  #isYoung({ beganAtMs }: Lookup): boolean {
    return this.#clock.monotonicMs() - beganAtMs < SHARED_MS;
  }

  #begin(lookup: Lookup): void {
    lookup.beganAtMs = this.#clock.monotonicMs();
    this.#underWay.push(lookup);
    try {
      this.#lookup(lookup.hostname, lookup.options, (...answer) => this.#answered(lookup, answer));
    } catch (error) {
      // What takes an argument for wrong throws at once.
      process.nextTick(() => this.#answered(lookup, [error as NodeJS.ErrnoException, []]));
    }
  }

  #answered(lookup: Lookup, answer: Answer): void {
    this.#underWay.splice(this.#underWay.indexOf(lookup), 1);
    for (const waiting of lookup.waiting) {
      // In turns of their own: what one throws keeps nothing from the others.
      process.nextTick(() => {
        if (lookup.waiting.delete(waiting)) waiting.told(...answer);
      });
    }
    const next = this.#inLine.shift();
    if (next !== undefined) this.#begin(next);
  }
}

function asksTheSame(lookup: Lookup, hostname: string, { family, hints, all }: LookupOptions): boolean {
  const { options } = lookup;
  return (
    lookup.hostname === hostname &&
    options.family === family &&
    options.hints === hints &&
    options.all === all
  );
}
