/** Content-Length against the data that comes (RFC 9113 §8.1.1). */

import type { FaultReason } from './fault.ts';

/**
 * Counts the data of one message. Reports faults as soon as they are certain: too much with the first octet beyond, too
 * little with the end.
 */
export class BodyLength {
  readonly #expected: number | undefined;
  #received = 0;

  /** @param expected octets, as `contentLength` or `expectedBodyBytes` says; undefined if unknown */
  constructor(expected: number | undefined) {
    this.#expected = expected;
  }

  /** Octets of data so far. */
  get received(): number {
    return this.#received;
  }

  /**
   * Data came, in octets without padding.
   * @param ended whether the message has ended, with this DATA, its head or its trailers
   */
  receive(bytes: number, ended: boolean): FaultReason | undefined {
    this.#received += bytes;
    if (this.#expected === undefined) return undefined;
    const wrong = ended ? this.#received !== this.#expected : this.#received > this.#expected;
    return wrong ? 'length_differs' : undefined;
  }
}
