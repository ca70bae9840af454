import { LruMap } from '../../platform/limits/lru-map.ts';
import type { Clock } from '../../platform/time/clock.ts';

export interface RefusedHost {
  /** With its port if one was named. */
  readonly host: string;
  /** Since it was last forgotten. */
  readonly times: number;
  /** Wall time in ms. */
  readonly lastAtMs: number;
}

/** Apps may ask for any number. */
const MAX_HOSTS = 16;
/** A name (RFC 1035 §2.3.4) and a port. */
const LONGEST = 253 + 6;

export class RefusedHosts {
  readonly #hosts = new LruMap<string, RefusedHost>({ max: MAX_HOSTS });
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(asked: string): void {
    const host = asked.slice(0, LONGEST);
    const times = (this.#hosts.get(host)?.times ?? 0) + 1;
    this.#hosts.set(host, { host, times, lastAtMs: this.#clock.now().wallMs });
  }

  /** The latest first. */
  latest(): readonly RefusedHost[] {
    return [...this.#hosts.entries()].map(([, host]) => host).reverse();
  }
}
