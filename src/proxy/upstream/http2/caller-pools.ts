import type { Http2Pool } from './pool.ts';

/** Up to 16 pools are kept, used or not. */
const FEW = 16;

/**
 * Each caller has connections of its own, so that none waits for what another leaves unread, or fails because
 * another cancels.
 */
export class CallerPools {
  readonly #make: () => Http2Pool;
  /** One pool if callers are not told apart. */
  readonly #pools = new Map<string | undefined, Http2Pool>();
  /** At this many, unused pools are forgotten. */
  #many = FEW;
  /** What becomes of pools that are made from now on. */
  #made: 'kept' | 'retired' | 'closed' = 'kept';

  constructor(make: () => Http2Pool) {
    this.#make = make;
  }

  of(caller: string | undefined): Http2Pool {
    const known = this.#pools.get(caller);
    if (known !== undefined) return known;
    if (this.#pools.size >= this.#many) this.#forgetUnused();
    const made = this.#make();
    if (this.#made === 'retired') made.drain();
    else if (this.#made === 'closed') made.close();
    this.#pools.set(caller, made);
    return made;
  }

  /** It is at most `FEW`, or twice what was in use at the last look. */
  get size(): number {
    return this.#pools.size;
  }

  discardIdle(caller: string | undefined): void {
    this.#pools.get(caller)?.discardIdle();
  }

  renew(): void {
    for (const pool of this.#pools.values()) pool.renew();
  }

  drain(): void {
    this.#made = 'retired';
    for (const pool of this.#pools.values()) pool.drain();
  }

  close(): void {
    this.#made = 'closed';
    for (const pool of this.#pools.values()) pool.close();
  }

  #forgetUnused(): void {
    for (const [caller, pool] of this.#pools) {
      if (pool.inUse) continue;
      this.#pools.delete(caller);
      pool.drain();
    }
    this.#many = Math.max(FEW, 2 * this.#pools.size);
  }
}
