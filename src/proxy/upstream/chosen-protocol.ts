import type { Clock } from '../../platform/time/clock.ts';
import type { Protocol } from '../http/messages.ts';

/** Which version of HTTP an upstream speaks, as it chose last: known to all connections of its route. */
export class ChosenProtocol {
  readonly #clock: Clock;
  #last: Protocol | undefined;
  #atMs = Number.NEGATIVE_INFINITY;

  /** @param settled where the upstream is not asked. */
  constructor(clock: Clock, settled?: Protocol) {
    this.#clock = clock;
    this.#last = settled;
  }

  /** Undefined until it was asked. */
  get last(): Protocol | undefined {
    return this.#last;
  }

  /** A connection stands, by which it has chosen. */
  chose(protocol: Protocol): void {
    this.#last = protocol;
    this.#atMs = this.#clock.monotonicMs();
  }

  /** Whether it made its last choice less than `ms` ago. */
  choseWithin(ms: number): boolean {
    return this.#clock.monotonicMs() - this.#atMs < ms;
  }
}
