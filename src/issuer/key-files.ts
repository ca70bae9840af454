/**
 * A directory of keys that are published beside the signing key: the next one, so that verifiers know it before it
 * signs, and former ones, so that their tokens verify even after a restart of the issuer.
 */

import { readdir, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log/logger.ts';
import { type DirectoryWatchOptions, watchDirectory } from '../platform/mounted/directory-watch.ts';
import { type MountedSecret, openLiveSecret, readMountedSecret } from '../platform/mounted/mounted-secret.ts';
import { ConfigurationError, describeProblem, type Problem } from '../platform/problems.ts';
import {
  createKeyRing,
  type KeyRing,
  type PublishedKey,
  parsePublishedKey,
  parseSigningKey,
  type SigningAlgorithm,
  type SigningKey,
} from './keys.ts';
import type { IssuerMetrics } from './metrics.ts';

interface PublishedKeysDirectory {
  readonly path: string;
  /** Names the directory in messages: the flag or variable that gave it. */
  readonly key: string;
}

interface PublishedKeys {
  /** Shows them from now on, and follows the directory. */
  showIn(keys: KeyRing): void;
  close(): void;
}

/** Each verifier reads all of them. */
const MAX_KEYS = 16;

type Reading = { readonly keys: readonly PublishedKey[] } | { readonly problems: readonly Problem[] };

/**
 * Reads the `*.pem` files of a directory, and again when they change. If any of them is unusable, the last good keys
 * stay.
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

  /** One look after the other. */
  function look(): Promise<void> {
    looks = looks.then(async () => apply(await readKeys(directory)));
    return looks;
  }

  function apply(next: Reading): void {
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
  // A change between the first reading and the watch would otherwise wait for the poll.
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
async function readKeys({ path, key }: PublishedKeysDirectory): Promise<Reading> {
  const problems: Problem[] = [];
  try {
    for (;;) {
      const version = await currentVersion(path);
      const names = (await readdir(version)).filter((name) => /^[^.].*\.pem$/.test(name)).sort();
      if (names.length > MAX_KEYS) {
        return { problems: [{ key, value: path, expected: `at most ${MAX_KEYS} keys` }] };
      }
      const files = await readMountedSecret(version, names);
      // The kubelet removes a version as soon as it has swapped in the next: then that one is read.
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

/** Equal if nothing has changed. */
function textOf(reading: Reading): string {
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
  /** Names the file in messages: the flag or variable that gave it. */
  readonly key: string;
}

interface LiveSigningKeyOptions extends DirectoryWatchOptions {
  readonly metrics: IssuerMetrics;
  readonly log: Logger;
}

/**
 * Follows a key file: a new key in it signs at once. If the file becomes unusable, the key in use stays.
 * @throws {ConfigurationError} if the file is unusable from the start.
 */
export async function followSigningKey(
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
    // A newer reading has come meanwhile, with its own reload.
    if (reading !== secret.current()) return;
    if ('expected' in key) {
      metrics.reloaded('signing_key', 'failure');
      log.error({ problem: describeProblem(key) }, 'signing key not reloaded, the last good one stays');
      return;
    }
    keys.rotate(key);
    metrics.reloaded('signing_key', 'success');
    log.info({ kid: key.keyId, alg: key.algorithm }, 'signing key loaded');
  }

  secret.onChange((reading) => void reload(reading));
  // A change while the first key was being prepared had no listener yet.
  if (secret.current() !== firstReading) await reload(secret.current());
  return { keys, close: secret.close };
}
