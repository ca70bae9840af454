import { basename, dirname } from 'node:path';
import type { Logger } from '../platform/log/logger.ts';
import type { DirectoryWatchOptions } from '../platform/mounted/directory-watch.ts';
import { openLiveSecret } from '../platform/mounted/live-secret.ts';
import type { MountedSecret } from '../platform/mounted/mounted-secret.ts';
import { ConfigurationError, describeProblem, type Problem } from '../platform/problems.ts';
import { createKeyRing, type KeyRing } from './key-ring.ts';
import type { IssuerMetrics } from './metrics.ts';
import { parseSigningKey, type SigningAlgorithm, type SigningKey } from './signing-key.ts';

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

export interface LiveSigningKeyOptions extends DirectoryWatchOptions {
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
