/**
 * A directory of keys that are published beside the signing key: the next one, so that verifiers know it before it
 * signs, and former ones, so that their tokens verify even after a restart of the issuer.
 */

import { readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import { watchDirectory } from '../platform/mounted/directory-watch.ts';
import { readMountedSecret } from '../platform/mounted/mounted-secret.ts';
import { ConfigurationError, describeProblem, type Problem } from '../platform/problems.ts';
import type { KeyRing } from './key-ring.ts';
import type { LiveSigningKeyOptions } from './live-signing-key.ts';
import { type PublishedKey, parsePublishedKey } from './signing-key.ts';

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
