/** Bounded maps that drop what was used longest ago. */

import type { Clock } from '../time/clock.ts';

interface LruMapOptions<K, V> {
  readonly max: number;
  /** An entry over an eighth of it is not kept. Needs `weigh`. */
  readonly maxWeight?: number;
  /** Constant; not negative. */
  readonly weigh?: (value: V, key: K) => number;
  readonly onEvicted?: (value: V, key: K) => void;
}

/** Of all weight. */
const MAX_SHARE = 1 / 8;

/** @typeParam V never `undefined`. */
export class LruMap<K, V> {
  readonly #options: LruMapOptions<K, V>;
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

  /** Leaves the order unchanged. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

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
  /** Monotonic. */
  readonly untilMs: number;
}

/** Drops each entry after its time, or as the least recently used. */
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
