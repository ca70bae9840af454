/** Maps that hold so much and no more: what was used longest ago goes first. */

import type { Clock } from '../time/clock.ts';

interface LruMapOptions<K, V> {
  /** Entries. */
  readonly max: number;
  /** All weights together; an entry of more than an eighth of it is not kept at all. Needs `weigh`. */
  readonly maxWeight?: number;
  /** The weight of an entry, which stays the same; not negative. */
  readonly weigh?: (value: V, key: K) => number;
  /** Called with what is forgotten for want of room. */
  readonly onEvicted?: (value: V, key: K) => void;
}

/** Which part of all weight one entry may have. */
const MAX_SHARE = 1 / 8;

/** A map whose least recently used entry goes when it holds too much. @typeParam V never `undefined`. */
export class LruMap<K, V> {
  readonly #options: LruMapOptions<K, V>;
  /** The least recently used first. */
  readonly #entries = new Map<K, { readonly value: V; readonly weight: number }>();
  #weight = 0;

  constructor(options: LruMapOptions<K, V>) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Makes the entry the most recently used. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Leaves the entry where it is. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** Makes the entry the most recently used, in place of one with the same key. */
  set(key: K, value: V): void {
    this.delete(key);
    const { max, maxWeight = Number.POSITIVE_INFINITY, weigh } = this.#options;
    const weight = weigh?.(value, key) ?? 0;
    if (weight > maxWeight * MAX_SHARE) return;
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size <= max && this.#weight <= maxWeight) break;
      this.delete(oldest);
      this.#options.onEvicted?.(entry.value, oldest);
    }
  }

  delete(key: K): void {
    this.#weight -= this.#entries.get(key)?.weight ?? 0;
    this.#entries.delete(key);
  }

  /** The least recently used first. */
  *entries(): IterableIterator<readonly [K, V]> {
    for (const [key, { value }] of this.#entries) yield [key, value];
  }
}

interface Expiring<V> {
  readonly value: V;
  /** In monotonic time. */
  readonly untilMs: number;
}

/** A map that forgets each entry after a time of its own, and the least recently used one when it holds too many. */
export class ExpiringMap<K, V> {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #entries: LruMap<K, Expiring<V>>;

  constructor(clock: Pick<Clock, 'monotonicMs'>, max: number) {
    this.#clock = clock;
    this.#entries = new LruMap({ max });
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && this.#clock.monotonicMs() < entry.untilMs ? entry.value : undefined;
  }

  set(key: K, value: V, forMs: number): void {
    this.#entries.set(key, { value, untilMs: this.#clock.monotonicMs() + forMs });
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }
}
