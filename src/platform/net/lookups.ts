/** Lookups shared by all who ask at the moment. Slow names take a bounded part of them. */

import { type LookupOptions, lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { lookupThreads } from '../process/thread-pool.ts';
import { type Clock, systemClock } from '../time/clock.ts';

interface LookupBounds {
  readonly atOnce: number;
  readonly ofParty: number;
  /** The last is shared for as long as it takes. */
  readonly ofName: number;
  /** If more are under way, a party known to be late waits. One party has all but one of them. */
  readonly late: number;
}

/** DNS takes no thread and repeats lost questions. */
export const DNS_BOUNDS: LookupBounds = {
  atOnce: Number.POSITIVE_INFINITY,
  ofParty: Number.POSITIVE_INFINITY,
  ofName: 1,
  late: Number.POSITIVE_INFINITY,
};

/**
 * A late lookup's question may be lost, which the system notices after seconds. It is shared with nobody new if another
 * may begin.
 */
const LATE_MS = 1000;

const MAX_LATE_PARTIES = 1000;

type Told = Parameters<LookupFunction>[2];
type Answer = Parameters<Told>;

interface Waiting {
  readonly told: Told;
}

interface Lookup {
  readonly hostname: string;
  readonly options: LookupOptions;
  readonly party: string;
  readonly waiting: Set<Waiting>;
  /** Infinite before it begins. */
  beganAtMs: number;
}

export class SharedLookups {
  readonly #lookup: LookupFunction;
  readonly #bounds: LookupBounds;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #underWay: Lookup[] = [];
  /** Somebody waits for each. */
  readonly #inLine: Lookup[] = [];
  /** Their last lookup was late and found nothing; the oldest first. */
  readonly #lateParties = new Set<string>();

  constructor(lookup: LookupFunction, bounds: LookupBounds, clock: Pick<Clock, 'monotonicMs'> = systemClock) {
    this.#lookup = lookup;
    this.#bounds = bounds;
    this.#clock = clock;
  }

  /**
   * @param told is called in a turn of its own.
   * @param party whose share it takes; names of one origin may have one.
   * @returns forgets `told`.
   */
  ask(hostname: string, options: LookupOptions, told: Told, party: string = hostname): () => void {
    const waiting: Waiting = { told };
    const lookup = this.#lookupOf(hostname, options, party);
    lookup.waiting.add(waiting);
    return () => {
      lookup.waiting.delete(waiting);
      if (lookup.waiting.size === 0) take(this.#inLine, lookup);
    };
  }

  #lookupOf(hostname: string, options: LookupOptions, party: string): Lookup {
    const isSame = (other: Lookup): boolean => asksTheSame(other, hostname, options);
    const underWay = this.#underWay.filter(isSame);
    const last = underWay.at(-1);
    if (last !== undefined && !this.#mayBeginAnother(last, underWay.length, party)) return last;
    const inLine = this.#inLine.find((other) => other.party === party && isSame(other));
    if (inLine !== undefined) return inLine;
    const lookup: Lookup = {
      hostname,
      options,
      party,
      waiting: new Set(),
      beganAtMs: Number.POSITIVE_INFINITY,
    };
    if (this.#mayBegin(party)) this.#begin(lookup);
    else this.#inLine.push(lookup);
    return lookup;
  }

  #mayBeginAnother(last: Lookup, underWay: number, party: string): boolean {
    return (
      this.#isLate(last) &&
      underWay < this.#bounds.ofName &&
      this.#mayBegin(party) &&
      this.#late() < this.#bounds.late
    );
  }

  #mayBegin(party: string): boolean {
    const { atOnce, ofParty, late } = this.#bounds;
    if (this.#underWay.length >= atOnce) return false;
    const own = this.#underWayOf(party);
    if (!this.#lateParties.has(party)) return own < ofParty;
    return this.#late() < late && own < Math.min(ofParty, Math.max(1, late - 1));
  }

  #underWayOf(party: string): number {
    return this.#underWay.filter((other) => other.party === party).length;
  }

  #late(): number {
    return this.#underWay.filter((one) => this.#isLate(one) || this.#lateParties.has(one.party)).length;
  }

  #isLate({ beganAtMs }: Lookup): boolean {
    return this.#clock.monotonicMs() - beganAtMs >= LATE_MS;
  }

  #begin(lookup: Lookup): void {
    lookup.beganAtMs = this.#clock.monotonicMs();
    this.#underWay.push(lookup);
    try {
      this.#lookup(lookup.hostname, lookup.options, (...answer) => this.#answered(lookup, answer));
    } catch (error) {
      // A wrong argument makes it throw at once.
      process.nextTick(() => this.#answered(lookup, [error as NodeJS.ErrnoException, []]));
    }
  }

  #answered(lookup: Lookup, answer: Answer): void {
    take(this.#underWay, lookup);
    const [error] = answer;
    this.#rememberWhetherLate(lookup, error === null);
    for (const waiting of lookup.waiting) {
      // One that throws does not stop the others.
      process.nextTick(() => {
        if (lookup.waiting.delete(waiting)) waiting.told(...answer);
      });
    }
    this.#beginNext();
  }

  /** A late answer may only mean a lost question, so the party is not remembered for it. */
  #rememberWhetherLate(lookup: Lookup, found: boolean): void {
    this.#lateParties.delete(lookup.party);
    if (found || !this.#isLate(lookup)) return;
    this.#lateParties.add(lookup.party);
    if (this.#lateParties.size <= MAX_LATE_PARTIES) return;
    const [oldest] = this.#lateParties;
    if (oldest !== undefined) this.#lateParties.delete(oldest);
  }

  #beginNext(): void {
    while (this.#underWay.length < this.#bounds.atOnce) {
      const next = this.#nextInLine();
      if (next === undefined) return;
      take(this.#inLine, next);
      this.#begin(next);
    }
  }

  /** The longest in line of the party with the fewest under way. */
  #nextInLine(): Lookup | undefined {
    let next: Lookup | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    const seen = new Set<string>();
    for (const lookup of this.#inLine) {
      if (fewest === 0) break;
      const { party } = lookup;
      if (seen.has(party)) continue;
      seen.add(party);
      const own = this.#underWayOf(party);
      if (own >= fewest || !this.#mayBegin(party)) continue;
      next = lookup;
      fewest = own;
    }
    return next;
  }
}

function take<T>(from: T[], one: T): boolean {
  const at = from.indexOf(one);
  if (at !== -1) from.splice(at, 1);
  return at !== -1;
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

// The system's lookups hold a thread while name servers are silent. Upstreams have their own threads, so that tokens
// never wait for them.

export function sharesOf(threads: number): { readonly own: LookupBounds; readonly upstreams: LookupBounds } {
  const own = Math.max(1, Math.floor(threads / 3));
  return { own: boundsWithin(own), upstreams: boundsWithin(Math.max(1, threads - own)) };
}

function boundsWithin(threads: number): LookupBounds {
  return { atOnce: threads, ofParty: 4, ofName: 2, late: Math.ceil(threads / 3) };
}

const SHARES = sharesOf(lookupThreads());

export const UPSTREAM_BOUNDS = SHARES.upstreams;

const own = new SharedLookups(systemLookup as LookupFunction, SHARES.own);

/** For all connections but those to upstreams. */
export const ownLookup: LookupFunction = (hostname, options, told) => void own.ask(hostname, options, told);
