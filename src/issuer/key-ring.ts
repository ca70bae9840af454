import type { JSONWebKeySet } from 'jose';
import { type Clock, type Instant, later } from '../platform/time/clock.ts';
import type { PublishedKey, SigningKey } from './signing-key.ts';

/** The signing key, the public halves of former ones whose tokens may still be alive, and the additional published keys. */
export interface KeyRing {
  current(): SigningKey;
  /** The current key, kept for the life of a token that is signed with it now. */
  keyFor(lifetimeSeconds: number): SigningKey;
  /** Signs with `key` from now on. */
  rotate(key: SigningKey): void;
  /** Also shows these keys, in place of those published before. */
  publish(keys: readonly PublishedKey[]): void;
  /** Keys whose tokens may be alive, but which nobody shows once this process has ended. */
  lostAtEnd(): readonly PublishedKey[];
  /** Only public keys (RFC 7517 §5), the current one first. */
  jwks(): JSONWebKeySet;
}

/** Verifiers allow for clock differences; so does the end of a retired key. */
const CLOCK_SKEW_MS = 60_000;

interface Entry {
  readonly key: SigningKey;
  /** When the longest-lived token that this key signed has expired everywhere. */
  neededUntil: Instant;
}

export function createKeyRing(initial: SigningKey, clock: Clock): KeyRing {
  let current: Entry = { key: initial, neededUntil: clock.now() };
  let retired: readonly Entry[] = [];
  let published: readonly PublishedKey[] = [];

  function dropDead(): void {
    const now = clock.now();
    retired = retired.filter(({ neededUntil }) => !hasPassed(neededUntil, now));
  }

  return {
    current: () => current.key,
    keyFor(lifetimeSeconds) {
      const end = later(clock.now(), lifetimeSeconds * 1000 + CLOCK_SKEW_MS);
      current.neededUntil = latest(current.neededUntil, end);
      return current.key;
    },
    rotate(key) {
      if (key.keyId === current.key.keyId) return;
      const entry = retired.find((before) => before.key.keyId === key.keyId);
      retired = [current, ...retired.filter((before) => before !== entry)];
      current = entry ?? { key, neededUntil: clock.now() };
    },
    publish(keys) {
      published = keys;
    },
    lostAtEnd() {
      dropDead();
      const kept = new Set(published.map(({ keyId }) => keyId));
      return retired.map(({ key }) => key).filter(({ keyId }) => !kept.has(keyId));
    },
    jwks() {
      dropDead();
      const shown = new Map<string, PublishedKey>();
      for (const key of [current.key, ...published, ...retired.map((entry) => entry.key)]) {
        if (!shown.has(key.keyId)) shown.set(key.keyId, key);
      }
      return { keys: [...shown.values()].map(({ publicJwk }) => publicJwk) };
    },
  };
}

/** Passed by both clocks: a stepped wall clock must not remove a key whose tokens are alive. */
function hasPassed(instant: Instant, now: Instant): boolean {
  return now.monotonicMs >= instant.monotonicMs && now.wallMs >= instant.wallMs;
}

function latest(a: Instant, b: Instant): Instant {
  return {
    monotonicMs: Math.max(a.monotonicMs, b.monotonicMs),
    wallMs: Math.max(a.wallMs, b.wallMs),
  };
}
