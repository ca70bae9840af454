import type { FinishedGrant, GrantMinute, PastGrants } from './token-snapshot.ts';

/** This many latest grants are remembered one by one. */
const LATEST = 20;
/** All grants are counted by the minute, for two hours. */
const MINUTES = 120;

const MINUTE_MS = 60_000;
/** A minute's tally stops here. */
const MOST = 0xffff;

/** The outcomes of a credential's grants, in a kilobyte, however many there are. */
export class GrantHistory {
  readonly #latest: FinishedGrant[] = [];
  /** For each slot, the minute since the epoch that it counts: a stepped clock leaves no wrong counts behind. */
  readonly #minutes = new Int32Array(MINUTES);
  readonly #succeeded = new Uint16Array(MINUTES);
  readonly #failed = new Uint16Array(MINUTES);
  #failingSinceMs: number | undefined;

  /** Wall time of the first failure since the last success; undefined while the last grant succeeded. */
  get failingSinceMs(): number | undefined {
    return this.#failingSinceMs;
  }

  add(grant: FinishedGrant): void {
    this.#latest.push(grant);
    if (this.#latest.length > LATEST) this.#latest.shift();
    const succeeded = grant.result === 'success';
    if (succeeded) this.#failingSinceMs = undefined;
    else this.#failingSinceMs ??= grant.atMs;
    const minute = Math.floor(grant.atMs / MINUTE_MS);
    const slot = minute % MINUTES;
    if (this.#minutes[slot] !== minute) {
      this.#minutes[slot] = minute;
      this.#succeeded[slot] = 0;
      this.#failed[slot] = 0;
    }
    const tally = succeeded ? this.#succeeded : this.#failed;
    tally[slot] = Math.min(MOST, (tally[slot] as number) + 1);
  }

  /** @param nowMs wall time. */
  read(nowMs: number): PastGrants {
    return { latest: [...this.#latest], minutes: this.#minutesUntil(nowMs) };
  }

  #minutesUntil(nowMs: number): readonly GrantMinute[] {
    const last = Math.floor(nowMs / MINUTE_MS);
    const found: GrantMinute[] = [];
    for (let minute = last - MINUTES + 1; minute <= last; minute++) {
      const slot = minute % MINUTES;
      if (this.#minutes[slot] !== minute) continue;
      const [succeeded, failed] = [this.#succeeded[slot] as number, this.#failed[slot] as number];
      found.push({ atMs: minute * MINUTE_MS, succeeded, failed });
    }
    return found;
  }
}
