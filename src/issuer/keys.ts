/** The private key that signs, and the public one in the JWKS. */

import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { calculateJwkThumbprint, type JSONWebKeySet, type JWK } from 'jose';
import { type Clock, type Instant, later } from '../platform/time/clock.ts';

export const SIGNING_ALGORITHMS = ['ES256', 'RS256', 'EdDSA'] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

/** A key as verifiers see it. */
export interface PublishedKey {
  readonly algorithm: SigningAlgorithm;
  /** Thumbprint of the public key (RFC 7638): the same key has the same id in every replica and after every start. */
  readonly keyId: string;
  /** With `kid`, `alg` and `use`; nothing private. */
  readonly publicJwk: JWK;
}

export interface SigningKey extends PublishedKey {
  readonly privateKey: KeyObject;
}

const KEY_EXPECTED: Readonly<Record<SigningAlgorithm, string>> = {
  ES256: 'an EC key on P-256',
  RS256: 'an RSA key of at least 2048 bits',
  EdDSA: 'an Ed25519 key',
};

const generate = promisify(generateKeyPair);

/** A new key: tokens signed with it cannot be verified after the process has ended. */
export async function generateSigningKey(algorithm: SigningAlgorithm): Promise<SigningKey> {
  return await signingKey(algorithm, await generatePrivateKey(algorithm));
}

/**
 * The key in a PEM: PKCS#8, or the older SEC 1 and PKCS#1.
 * @returns the key, or what was expected instead, as a noun phrase that holds nothing of the PEM.
 */
export async function parseSigningKey(
  pem: string,
  algorithm: SigningAlgorithm,
): Promise<SigningKey | { readonly expected: string }> {
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
  } catch {
    return { expected: `an unencrypted private key in PEM: ${KEY_EXPECTED[algorithm]}` };
  }
  const suits = algorithmOf(privateKey);
  if (suits !== algorithm) {
    const hint = suits === undefined ? '' : `; this one is for ${suits}`;
    return { expected: `${KEY_EXPECTED[algorithm]} for ${algorithm}${hint}` };
  }
  return await signingKey(algorithm, privateKey);
}

/**
 * The key in a PEM, of which only the public half is kept: a private key as for `parseSigningKey`, or a public one.
 * @returns the key, or what was expected instead, as a noun phrase that holds nothing of the PEM.
 */
export async function parsePublishedKey(pem: string): Promise<PublishedKey | { readonly expected: string }> {
  let publicKey: KeyObject;
  try {
    publicKey = createPublicKey(pem);
  } catch {
    return { expected: 'a public or an unencrypted private key in PEM' };
  }
  const algorithm = algorithmOf(publicKey);
  if (algorithm === undefined) return { expected: Object.values(KEY_EXPECTED).join(', or ') };
  return await publishedKey(algorithm, publicKey);
}

async function signingKey(algorithm: SigningAlgorithm, privateKey: KeyObject): Promise<SigningKey> {
  return { ...(await publishedKey(algorithm, createPublicKey(privateKey))), privateKey };
}

async function publishedKey(algorithm: SigningAlgorithm, publicKey: KeyObject): Promise<PublishedKey> {
  const jwk = publicKey.export({ format: 'jwk' }) as JWK;
  const keyId = await calculateJwkThumbprint(jwk);
  return { algorithm, keyId, publicJwk: { ...jwk, kid: keyId, alg: algorithm, use: 'sig' } };
}

async function generatePrivateKey(algorithm: SigningAlgorithm): Promise<KeyObject> {
  switch (algorithm) {
    case 'ES256':
      return (await generate('ec', { namedCurve: 'P-256' })).privateKey;
    case 'RS256':
      return (await generate('rsa', { modulusLength: 2048 })).privateKey;
    case 'EdDSA':
      return (await generate('ed25519')).privateKey;
  }
}

function algorithmOf(key: KeyObject): SigningAlgorithm | undefined {
  const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
  if (namedCurve === 'prime256v1') return 'ES256';
  if (key.asymmetricKeyType === 'rsa' && modulusLength >= 2048) return 'RS256';
  return key.asymmetricKeyType === 'ed25519' ? 'EdDSA' : undefined;
}

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
