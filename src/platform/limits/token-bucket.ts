/** All times are monotonic milliseconds. */

import { LruMap } from './lru-map.ts';

export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** Full at first. */
export class TokenBucket {
  /** May change; what is left stays, up to the new burst. */
  rate: Rate;
  #left = Number.POSITIVE_INFINITY;
  #asOfMs = 0;

  constructor(rate: Rate) {
    this.rate = rate;
  }

  take(nowMs: number): boolean {
    if (this.#refilled(nowMs) < 1) return false;
    this.#left -= 1;
    return true;
  }

  /** Takes one even if there is none. */
  charge(nowMs: number): void {
    this.#left = this.#refilled(nowMs) - 1;
  }

  /** Up to the burst. */
  refund(count: number): void {
    this.#left = Math.min(this.rate.burst, this.#left + count);
  }

  /** 0 if there is one now. */
  waitMs(nowMs: number): number {
    return (Math.max(0, 1 - this.#refilled(nowMs)) * 1000) / this.rate.perSecond;
  }

  isFull(nowMs: number): boolean {
    return this.#refilled(nowMs) === this.rate.burst;
  }

  #refilled(nowMs: number): number {
    const { burst, perSecond } = this.rate;
    this.#left = Math.min(burst, this.#left + ((nowMs - this.#asOfMs) * perSecond) / 1000);
    this.#asOfMs = nowMs;
    return this.#left;
  }
}

/** Drops full buckets and, beyond `max`, the one used longest ago. */
export class TokenBuckets {
  readonly #rate: Rate;
  readonly #buckets: LruMap<string, TokenBucket>;

  constructor(rate: Rate, max: number) {
    this.#rate = rate;
    this.#buckets = new LruMap({ max });
  }

  get size(): number {
    return this.#buckets.size;
  }

  take(name: string, nowMs: number): boolean {
    return this.#use(name, nowMs).take(nowMs);
  }

  charge(name: string, nowMs: number): void {
    this.#use(name, nowMs).charge(nowMs);
  }

  refund(name: string, nowMs: number): void {
    this.#use(name, nowMs).refund(1);
  }

  waitMs(name: string, nowMs: number): number {
    return this.#buckets.peek(name)?.waitMs(nowMs) ?? 0;
  }

  #use(name: string, nowMs: number): TokenBucket {
    for (const [other, bucket] of this.#buckets.entries()) {
      if (!bucket.isFull(nowMs)) break;
      this.#buckets.delete(other);
    }
    const bucket = this.#buckets.peek(name) ?? new TokenBucket(this.#rate);
    this.#buckets.set(name, bucket);
    return bucket;
  }
}
