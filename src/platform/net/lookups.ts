/**
 * Names are looked up once for all who ask for them at the moment, and anew once there is an answer, or for long none. A name that
 * is not answered takes a bounded part of the lookups that run at once.
 */

import { type LookupOptions, lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { lookupThreads } from '../process/thread-pool.ts';
import { type Clock, systemClock } from '../time/clock.ts';

interface LookupBounds {
  /** Under way at once. */
  readonly atOnce: number;
  /** Under way at once for one party. */
  readonly ofParty: number;
  /** Of one name under way at once: the last of them is shared for as long as it takes. */
  readonly ofName: number;
  /**
   * Lookups of parties that are known to be late begin while fewer than so many are late, or of such parties. One party has all
   * but one of them.
   */
  readonly late: number;
}

/**
 * DNS takes no thread, and a question that is lost is asked again within the lookup. No name waits for another: the configuration
 * says how many there are.
 */
export const DNS_BOUNDS: LookupBounds = {
  atOnce: Number.POSITIVE_INFINITY,
  ofParty: Number.POSITIVE_INFINITY,
  ofName: 1,
  late: Number.POSITIVE_INFINITY,
};

/**
 * One that has taken longer is late. It is shared with nobody new, as far as there may be another: its question may be lost, which
 * the system finds out after seconds, while another one is answered at once.
 */
const LATE_MS = 1000;

/** Parties that are known to be late. The configuration says how many there are; this bounds what a long life of changes leaves. */
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

/** Lookups of one kind. Names come from outside, too; as many are remembered as are under way, or waited for. */
export class SharedLookups {
  readonly #lookup: LookupFunction;
  readonly #bounds: LookupBounds;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #underWay: Lookup[] = [];
  /** The longest first; each has somebody who waits for it. */
  readonly #inLine: Lookup[] = [];
  /** Whose last lookup was late, and found nothing; the oldest first. */
  readonly #lateParties = new Set<string>();

  constructor(lookup: LookupFunction, bounds: LookupBounds, clock: Pick<Clock, 'monotonicMs'> = systemClock) {
    this.#lookup = lookup;
    this.#bounds = bounds;
    this.#clock = clock;
  }

  /**
   * Calls back with the answer to a lookup that is under way, or is begun now or as soon as others are over.
   * @param told is called in a turn of its own.
   * @param party whose share of the lookups this one takes: the name's own, unless names of one origin share one.
   * @returns leaves: nothing is kept of `told`, and it is not called any more.
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

  /** Beside one of the same name that has no answer yet. */
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
      // What takes an argument for wrong throws at once.
      process.nextTick(() => this.#answered(lookup, [error as NodeJS.ErrnoException, []]));
    }
  }

  #answered(lookup: Lookup, answer: Answer): void {
    take(this.#underWay, lookup);
    const [error] = answer;
    this.#rememberWhetherLate(lookup, error === null);
    for (const waiting of lookup.waiting) {
      // In turns of their own: what one throws keeps nothing from the others.
      process.nextTick(() => {
        if (lookup.waiting.delete(waiting)) waiting.told(...answer);
      });
    }
    this.#beginNext();
  }

  /** One that was found late is not known for that: its first question was lost, or went to a server that is away. */
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

  /** The longest in line of the party with the fewest under way: who asks for many names lets others pass. */
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

/** Says whether it was there. */
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

// The system's lookups cannot be taken back and hold a thread for as long as name servers are silent. Upstreams have their
// threads and everything else has its own, so that tokens never wait for the names of upstreams.

/** Threads for the names of providers, collectors, the Kubernetes API and the token cache, and for those of upstreams. */
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

/** For every connection but those to upstreams. */
export const ownLookup: LookupFunction = (hostname, options, told) => void own.ask(hostname, options, told);
