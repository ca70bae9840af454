import type { Http2Pool } from './pool.ts';

/** As many pools are kept without looking whether they are in use. */
const FEW = 16;

/**
 * A route's HTTP/2 connections, those of each caller by themselves. Whatever requests share on a connection (its windows,
 * the streams and resets that an upstream allows, its end) they share with those of the same caller: nobody waits for what
 * another leaves unread, or fails because another cancels.
 */
export class CallerPools {
  readonly #make: () => Http2Pool;
  /** By caller; one where callers are not told apart. */
  readonly #pools = new Map<string | undefined, Http2Pool>();
  /** With so many of them, those out of use are forgotten. */
  #many = FEW;
  /** What becomes of a pool that is made from now on. */
  #made: 'kept' | 'retired' | 'closed' = 'kept';

  constructor(make: () => Http2Pool) {
    this.#make = make;
  }

  of(caller: string | undefined): Http2Pool {
    const known = this.#pools.get(caller);
    if (known !== undefined) return known;
    if (this.#pools.size >= this.#many) this.#forgetUnused();
    const made = this.#make();
    if (this.#made === 'retired') made.retire();
    else if (this.#made === 'closed') made.close();
    this.#pools.set(caller, made);
    return made;
  }

  /** Pools that are kept: at most `FEW`, or twice as many as were in use when they were looked at last. */
  get size(): number {
    return this.#pools.size;
  }

  /** As in `UpstreamStreams`. */
  discardIdle(caller: string | undefined): void {
    this.#pools.get(caller)?.discardIdle();
  }

  /** As in `Http2Pool`. */
  renew(): void {
    for (const pool of this.#pools.values()) pool.renew();
  }

  /** As in `UpstreamStreams`. */
  retire(): void {
    this.#made = 'retired';
    for (const pool of this.#pools.values()) pool.retire();
  }

  /** As in `UpstreamStreams`. */
  close(): void {
    this.#made = 'closed';
    for (const pool of this.#pools.values()) pool.close();
  }

  #forgetUnused(): void {
    for (const [caller, pool] of this.#pools) {
      if (pool.inUse) continue;
      this.#pools.delete(caller);
      pool.retire();
    }
    this.#many = Math.max(FEW, 2 * this.#pools.size);
  }
}
