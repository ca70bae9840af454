/**
 * The proofs of one credential (RFC 9449): its keys, the nonces that servers gave, and the provider's clock. A nonce is kept for the
 * origin of the server that gave it until it gives another; the least recently used goes first.
 */

import { LruMap } from '../../platform/limits/lru-map.ts';
import type { Clock, Instant } from '../../platform/time/clock.ts';
import type { Authorization, BoundToken, ProvedRequest } from '../bearer-source.ts';
import { parseHttpDate } from '../provider/token-response.ts';
import { makeProof, makeProofKey, type ProofKey, tokenHash } from './proof.ts';

/** Origins, for credentials of many hosts. */
const MAX_NONCES = 256;

/** RFC 9449 §8.1, bounded: the proof is a field of every request. */
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]{1,1024}$/;

/** Undefined if there is none that a proof can hold. @param field several fields are joined by commas. */
export function nonceIn(field: string | undefined): string | undefined {
  return field !== undefined && NONCE.test(field) ? field : undefined;
}

/** Clocks this close count as the same. A Date has no fractions, and the way takes time. */
const CLOCK_TOLERANCE_MS = 3000;

/** Instants are wall time. */
interface DatedAnswer {
  readonly date?: string | undefined;
  readonly requestedAtMs: number;
  readonly receivedAtMs: number;
}

/** What may be shown. */
export interface ProofReport {
  readonly made: number;
  readonly noncesTaken: number;
  /** Requests that were sent again with the nonce of the answer. */
  readonly noncesWanted: number;
  /** By upstreams. */
  readonly refused: number;
  /** Wall time. */
  readonly lastRefusedAtMs: number | undefined;
  /** Of the held token's key, or else of the one that the next token is bound to; undefined if neither is known. */
  readonly thumbprint: string | undefined;
  /** The provider has given a token that is bound to no key. */
  readonly holdsBearer: boolean;
}

export class ProofMaker {
  readonly #clock: Clock;
  /** Of this process; made when no key is mounted. */
  #ownKey: ProofKey | undefined;
  readonly #nonces = new LruMap<string, string>({ max: MAX_NONCES });
  /** Where the provider's clock differs, its time at a moment of ours. Our wall clock may be set right after it. */
  #providerTime: Instant | undefined;
  readonly #counts = { made: 0, noncesTaken: 0, noncesWanted: 0, refused: 0 };
  #lastRefusedAtMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param credentials undefined while none could be read. */
  report(
    held: Authorization | undefined,
    credentials: { readonly proofKey?: ProofKey } | undefined,
  ): ProofReport {
    const next = credentials && this.keyOf(credentials.proofKey).thumbprint;
    return {
      ...this.#counts,
      lastRefusedAtMs: this.#lastRefusedAtMs,
      thumbprint: typeof held === 'object' ? held.thumbprint : next,
      holdsBearer: typeof held === 'string',
    };
  }

  /** @param mounted by default the key of this process. */
  keyOf(mounted: ProofKey | undefined): ProofKey {
    if (mounted !== undefined) return mounted;
    this.#ownKey ??= makeProofKey();
    return this.#ownKey;
  }

  /** @param key to which the provider has bound the token. */
  bind(accessToken: string, key: ProofKey): BoundToken {
    const hash = tokenHash(accessToken);
    return {
      value: `DPoP ${accessToken}`,
      thumbprint: key.thumbprint,
      prove: (request, nonce) => this.prove(key, request, nonce, hash),
      nonceGiven: (origin, nonce) => this.nonceGiven(origin, nonce),
      told: (outcome) => this.told(outcome),
    };
  }

  /**
   * @param nonce by default the origin's last.
   * @param ath see `ProofFacts.tokenHash`.
   */
  prove(key: ProofKey, { method, origin, path }: ProvedRequest, nonce?: string, ath?: string): string {
    this.#counts.made += 1;
    return makeProof(key, {
      method,
      uri: origin + path,
      nowMs: this.#nowMs(),
      nonce: nonce ?? this.#nonces.get(origin),
      tokenHash: ath,
    });
  }

  told(outcome: 'nonce_wanted' | 'refused'): void {
    this.#counts[outcome === 'refused' ? 'refused' : 'noncesWanted'] += 1;
    if (outcome === 'refused') this.#lastRefusedAtMs = this.#clock.now().wallMs;
  }

  nonceGiven(origin: string, nonce: string): void {
    if (this.#nonces.peek(origin) === nonce) return;
    this.#counts.noncesTaken += 1;
    this.#nonces.set(origin, nonce);
  }

  /** By the provider. */
  dated({ date, requestedAtMs, receivedAtMs }: DatedAnswer): void {
    const dateMs = date === undefined ? undefined : parseHttpDate(date);
    if (dateMs === undefined) return;
    // A Date of 12:00:00 is any moment until 12:00:01.
    const offsetMs = dateMs + 500 - (requestedAtMs + receivedAtMs) / 2;
    const { wallMs, monotonicMs } = this.#clock.now();
    const differs = Math.abs(offsetMs) > CLOCK_TOLERANCE_MS;
    this.#providerTime = differs ? { wallMs: wallMs + offsetMs, monotonicMs } : undefined;
  }

  #nowMs(): number {
    const { wallMs, monotonicMs } = this.#clock.now();
    const theirs = this.#providerTime;
    return theirs === undefined ? wallMs : theirs.wallMs + monotonicMs - theirs.monotonicMs;
  }
}
