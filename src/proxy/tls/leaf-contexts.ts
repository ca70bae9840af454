import { createSecureContext, type SecureContext } from 'node:tls';
import { LruMap } from '../../platform/limits/lru-map.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { Authority } from './authority.ts';

/** Wildcards would otherwise let an app have any number of certificates made. */
export const MAX_LEAVES = 128;

/** A certificate is replaced when less than this part of its life is left. */
const RENEWED_AT = 1 / 3;

interface Kept {
  readonly context: SecureContext;
  /** Unix time in ms, as is the other. */
  readonly madeAtMs: number;
  readonly renewAtMs: number;
}

/** The certificates that apps are shown, by name: made on first use, kept while used, replaced before they expire. */
export class LeafContexts {
  readonly #authority: Authority;
  readonly #clock: Clock;
  readonly #kept = new LruMap<string, Kept>({ max: MAX_LEAVES });

  constructor(authority: Authority, clock: Clock) {
    this.#authority = authority;
    this.#clock = clock;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** @param name one of the listed, lower-case. */
  contextFor(name: string): SecureContext {
    const { wallMs } = this.#clock.now();
    const known = this.#kept.get(name);
    const kept = known !== undefined && isCurrent(known, wallMs) ? known : this.#make(name, wallMs);
    if (kept !== known) this.#kept.set(name, kept);
    return kept.context;
  }

  #make(name: string, nowMs: number): Kept {
    const { chain, key, expiresAtMs } = this.#authority.issue(name, nowMs);
    return {
      // Apps show no certificates: no authority is trusted to sign them, which saves loading the public roots.
      context: createSecureContext({ cert: chain, key, ca: [], minVersion: 'TLSv1.2' }),
      madeAtMs: nowMs,
      renewAtMs: expiresAtMs - (expiresAtMs - nowMs) * RENEWED_AT,
    };
  }
}

/** One that was made later than now was made by a clock that ran ahead, and may not be valid yet. */
function isCurrent({ madeAtMs, renewAtMs }: Kept, nowMs: number): boolean {
  return madeAtMs <= nowMs && nowMs < renewAtMs;
}
