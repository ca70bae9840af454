import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { readdir, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { calculateJwkThumbprint, type JSONWebKeySet, type JWK } from 'jose';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import { type Logger, withoutRepeatLimit } from '../platform/log/logger.ts';
import { type DirectoryWatchOptions, watchDirectory } from '../platform/mounted/directory-watch.ts';
import { type MountedSecret, openLiveSecret, readMountedSecret } from '../platform/mounted/mounted-secret.ts';
import { ConfigurationError, describeProblem, type Problem } from '../platform/problems.ts';
import { type Clock, type Instant, later } from '../platform/time/clock.ts';
import type { IssuerMetrics } from './metrics.ts';

export const SIGNING_ALGORITHMS = ['ES256', 'RS256', 'EdDSA'] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

interface PublishedKey {
  readonly algorithm: SigningAlgorithm;
  /** Thumbprint (RFC 7638), equal in every replica. */
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

/** Its tokens cannot be verified after the process has ended. */
export async function generateSigningKey(algorithm: SigningAlgorithm): Promise<SigningKey> {
  return await signingKey(algorithm, await generatePrivateKey(algorithm));
}

/**
 * Takes PKCS#8, SEC 1 and PKCS#1.
 * @returns the key, or a noun phrase that holds nothing of the PEM.
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
 * Keeps only the public half.
 * @returns the key, or a noun phrase that holds nothing of the PEM.
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

export interface KeyRing {
  current(): SigningKey;
  /** The current key, kept for the life of a token. */
  keyFor(lifetimeSeconds: number): SigningKey;
  rotate(key: SigningKey): void;
  /** Replaces those published before. */
  publish(keys: readonly PublishedKey[]): void;
  /** Their tokens may be alive, but nobody shows them once this process has ended. */
  lostAtEnd(): readonly PublishedKey[];
  /** RFC 7517 §5, the current one first. */
  jwks(): JSONWebKeySet;
}

/** Verifiers allow for clock differences. */
const CLOCK_SKEW_MS = 60_000;

interface Entry {
  readonly key: SigningKey;
  /** When its longest-lived token has expired everywhere. */
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

/** A stepped wall clock must not remove a key whose tokens are alive. */
function hasPassed(instant: Instant, now: Instant): boolean {
  return now.monotonicMs >= instant.monotonicMs && now.wallMs >= instant.wallMs;
}

function latest(a: Instant, b: Instant): Instant {
  return {
    monotonicMs: Math.max(a.monotonicMs, b.monotonicMs),
    wallMs: Math.max(a.wallMs, b.wallMs),
  };
}

interface PublishedKeysDirectory {
  readonly path: string;
  /** For messages. */
  readonly key: string;
}

interface PublishedKeys {
  showIn(keys: KeyRing): void;
  close(): void;
}

/** Each verifier reads all of them. */
const MAX_KEYS = 16;

type ReadResult = { readonly keys: readonly PublishedKey[] } | { readonly problems: readonly Problem[] };

/**
 * If a `*.pem` file is unusable, the last good keys stay.
 * @throws {ConfigurationError} if the directory is unusable from the start.
 */
export async function openPublishedKeys(
  directory: PublishedKeysDirectory,
  options: LiveSigningKeyOptions,
): Promise<PublishedKeys> {
  const { metrics, log } = options;
  const first = await readKeys(directory);
  if ('problems' in first) throw new ConfigurationError(first.problems);
  let ring: KeyRing | undefined;
  let current = first.keys;
  let seen = textOf(first);
  let closed = false;
  let looks = Promise.resolve();

  function look(): Promise<void> {
    looks = looks.then(async () => apply(await readKeys(directory)));
    return looks;
  }

  function apply(next: ReadResult): void {
    const text = textOf(next);
    if (closed || text === seen) return;
    seen = text;
    if ('problems' in next) {
      metrics.reloaded('published_keys', 'failure');
      log.error(
        { problems: next.problems.map(describeProblem) },
        'published keys not reloaded, the last good ones stay',
      );
      return;
    }
    current = next.keys;
    ring?.publish(current);
    metrics.reloaded('published_keys', 'success');
    announce();
  }

  function announce(): void {
    log.info({ kids: current.map(({ keyId }) => keyId) }, 'published keys loaded');
  }

  const unwatch = watchDirectory(directory.path, options, () => void look());
  // A change may have come before the watch.
  await look();
  return {
    showIn(keys) {
      ring = keys;
      keys.publish(current);
      announce();
    },
    close() {
      closed = true;
      unwatch();
    },
  };
}

/** Never rejects. */
async function readKeys({ path, key }: PublishedKeysDirectory): Promise<ReadResult> {
  const problems: Problem[] = [];
  try {
    for (;;) {
      const version = await currentVersion(path);
      const names = (await readdir(version)).filter((name) => /^[^.].*\.pem$/.test(name)).sort();
      if (names.length > MAX_KEYS) {
        return { problems: [{ key, value: path, expected: `at most ${MAX_KEYS} keys` }] };
      }
      const files = await readMountedSecret(version, names);
      // The kubelet has removed this version.
      if ((await currentVersion(path)) !== version) continue;
      if (files.state !== 'loaded') {
        return { problems: [{ key, value: path, expected: `readable keys, but ${files.detail}` }] };
      }
      const keys: PublishedKey[] = [];
      for (const name of names) {
        const parsed = await parsePublishedKey(files.values[name] as string);
        if ('expected' in parsed) problems.push({ key: join(path, name), expected: parsed.expected });
        else keys.push(parsed);
      }
      return problems.length > 0 ? { problems } : { keys };
    }
  } catch (error) {
    const cause = systemCodeOf(error) ?? messageOf(error);
    return { problems: [{ key, value: path, expected: `a readable directory of keys (${cause})` }] };
  }
}

async function currentVersion(directory: string): Promise<string> {
  return await realpath(join(directory, '..data')).catch(() => realpath(directory));
}

function textOf(reading: ReadResult): string {
  return 'problems' in reading
    ? JSON.stringify(reading.problems)
    : JSON.stringify(reading.keys.map(({ keyId }) => keyId));
}

export interface LiveSigningKey {
  readonly keys: KeyRing;
  close(): void;
}

interface SigningKeyFile {
  readonly path: string;
  readonly algorithm: SigningAlgorithm;
  /** For messages. */
  readonly key: string;
}

interface LiveSigningKeyOptions extends DirectoryWatchOptions {
  readonly metrics: IssuerMetrics;
  readonly log: Logger;
}

/**
 * A new key in the file signs at once. If it is unusable, the last one stays.
 * @throws {ConfigurationError} if the file is unusable from the start.
 */
export async function watchSigningKey(
  file: SigningKeyFile,
  options: LiveSigningKeyOptions,
): Promise<LiveSigningKey> {
  const { metrics, log } = options;
  const name = basename(file.path);
  const secret = await openLiveSecret(dirname(file.path), [name], options);
  const firstReading = secret.current();
  const first = await readKey(firstReading);
  if ('expected' in first) {
    secret.close();
    throw new ConfigurationError([first]);
  }
  const keys = createKeyRing(first, options.clock);

  async function readKey(reading: MountedSecret): Promise<SigningKey | Problem> {
    const problem = (expected: string): Problem => ({ key: file.key, value: file.path, expected });
    if (reading.state !== 'loaded') return problem(`a readable file, but ${reading.detail}`);
    const key = await parseSigningKey(reading.values[name] as string, file.algorithm);
    return 'expected' in key ? problem(key.expected) : key;
  }

  async function reload(reading: MountedSecret): Promise<void> {
    const key = await readKey(reading);
    if (reading !== secret.current()) return;
    if ('expected' in key) {
      metrics.reloaded('signing_key', 'failure');
      withoutRepeatLimit(log).error(
        { problem: describeProblem(key) },
        'signing key not reloaded, the last good one stays',
      );
      return;
    }
    keys.rotate(key);
    metrics.reloaded('signing_key', 'success');
    log.info({ kid: key.keyId, alg: key.algorithm }, 'signing key loaded');
  }

  secret.onChange((reading) => void reload(reading));
  // Nobody listened while the first key was prepared.
  if (secret.current() !== firstReading) await reload(secret.current());
  return { keys, close: secret.close };
}
