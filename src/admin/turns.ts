/**
 * When a request to the admin listener is answered: at once while there are few, in turn if they would take the loop
 * from the data path.
 */

import type { Clock } from '../clock.ts';

/** What answering may cost when requests exceed the available time. */
interface Allowance {
  /** The fraction of the time. */
  readonly share: number;
  /** The time that may be spent at once after a rest. Milliseconds. */
  readonly burstMs: number;
  /**
   * How far one answer may exceed it. Elapsed time is not always ours (a stopped process, a used-up CPU quota): without
   * a bound one such answer would delay the next ones for twenty times as long. Milliseconds.
   */
  readonly debtMs: number;
}

/** For the kubelet: cheap, and late after a second. Separate, so that no other answer takes from it. */
export const FOR_PROBES: Allowance = { share: 0.05, burstMs: 250, debtMs: 20 };
export const FOR_OTHERS: Allowance = { share: 0.05, burstMs: 250, debtMs: 400 };

/** Reading a request and writing its answer, in addition to making it. Milliseconds. */
const REQUEST_MS = 0.2;
/** Answered together, to share what is the same for all; few enough not to be felt. */
const TOGETHER = 8;

export class Turns {
  readonly #allowance: Allowance;
  readonly #clock: Clock;
  /** Waiting requests by their address: each address has its turn. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #creditMs: number;
  #creditAtMs: number;
  #spentUntilMs = 0;
  #timerSet = false;

  constructor(allowance: Allowance, clock: Clock) {
    this.#allowance = allowance;
    this.#clock = clock;
    this.#creditMs = allowance.burstMs;
    this.#creditAtMs = clock.monotonicMs();
  }

  /**
   * Resolves when the caller may be answered; undefined if that is now.
   * @param whenGone takes a function to be called when the caller has gone: it gives up its place, and the promise
   * resolves.
   */
  wait(address: string, whenGone: (leave: () => void) => void): Promise<void> | undefined {
    this.#accrue();
    if (this.#creditMs > 0 && !this.#timerSet) {
      this.#creditMs -= REQUEST_MS;
      return undefined;
    }
    return new Promise((resolve) => {
      const sameAddress = this.#waiting.get(address);
      if (sameAddress === undefined) this.#waiting.set(address, [resolve]);
      else sameAddress.push(resolve);
      whenGone(() => this.#leave(address, resolve));
      this.#wakeLater();
    });
  }

  /** Accounts for making an answer since `startedAtMs`; work shared by several answers counts once. */
  spentSince(startedAtMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    const spentMs = nowMs - Math.max(startedAtMs, this.#spentUntilMs);
    this.#creditMs = Math.max(-this.#allowance.debtMs, this.#creditMs - spentMs);
    this.#spentUntilMs = nowMs;
  }

  #leave(address: string, proceed: () => void): void {
    const sameAddress = this.#waiting.get(address) ?? [];
    const place = sameAddress.indexOf(proceed);
    if (place < 0) return;
    sameAddress.splice(place, 1);
    if (sameAddress.length === 0) this.#waiting.delete(address);
    proceed();
  }

  #accrue(): void {
    const nowMs = this.#clock.monotonicMs();
    const { share, burstMs } = this.#allowance;
    this.#creditMs = Math.min(burstMs, this.#creditMs + (nowMs - this.#creditAtMs) * share);
    this.#creditAtMs = nowMs;
  }

  #wakeLater(): void {
    if (this.#timerSet) return;
    this.#timerSet = true;
    this.#clock.after(Math.max(1, -this.#creditMs / this.#allowance.share), () => {
      this.#timerSet = false;
      this.#accrue();
      if (this.#creditMs > 0) this.#wake();
      if (this.#waiting.size > 0) this.#wakeLater();
    });
  }

  #wake(): void {
    for (let left = TOGETHER; left > 0; left--) {
      const proceed = this.#next();
      if (proceed === undefined) return;
      this.#creditMs -= REQUEST_MS;
      proceed();
    }
  }

  /** The first request of the address that has waited longest for its turn; the address then goes to the end. */
  #next(): (() => void) | undefined {
    const first = this.#waiting.entries().next();
    if (first.done === true) return undefined;
    const [address, requests] = first.value;
    const request = requests.shift();
    this.#waiting.delete(address);
    if (requests.length > 0) this.#waiting.set(address, requests);
    return request;
  }
}
