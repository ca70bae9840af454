import { ManualClock } from '../support/manual-clock.ts';

/** A clock on which work takes time: `work` moves it on without firing timers. */
export class WorkingClock extends ManualClock {
  #workedMs = 0;

  work(ms: number): void {
    this.#workedMs += ms;
  }

  override monotonicMs(): number {
    return super.monotonicMs() + this.#workedMs;
  }
}
