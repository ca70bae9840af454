/** What is mounted for the cache: the key of its values, the login of its store, and the CAs that it is known by. */

import { basename, dirname, join } from 'node:path';
import { ConfigurationError } from '../../config/problems.ts';
import type { DirectoryWatchOptions } from '../../credentials/directory-watch.ts';
import { type LiveSecret, openLiveSecret } from '../../credentials/live-secret.ts';
import type { Logger } from '../../log/logger.ts';
import { parseAuthorities } from '../../x509/authorities.ts';
import type { StoreAccess } from './redis-store.ts';
import { type CacheKey, deriveKey, SECRET_BYTES } from './sealed-token.ts';
import type { CacheKeys } from './token-cache.ts';

export interface MountedAccess {
  keys(): CacheKeys;
  access(): StoreAccess;
  /** Calls back when the login or the CAs have changed. */
  onAccess(listener: () => void): void;
  close(): void;
}

export interface AccessFiles {
  readonly keyDirectory: string;
  readonly authDirectory?: string | undefined;
  readonly caFile?: string | undefined;
}

export interface FollowOptions extends DirectoryWatchOptions {
  readonly log: Logger;
}

/** A file that is followed. What cannot be used leaves the last good one in place, but for one that may be missing. */
interface Followed<T> {
  current(): T;
  close(): void;
}

/** @returns what a text says, or what is wrong with it. */
type Read<T> = (text: string) => { readonly value: T } | string;

/** @throws {ConfigurationError} when something of it is not usable from the start. */
export async function followAccess(
  { keyDirectory, authDirectory, caFile }: AccessFiles,
  options: FollowOptions,
): Promise<MountedAccess> {
  const closers: (() => void)[] = [];
  const listeners = new Set<() => void>();
  const changed = (): void => {
    for (const listener of listeners) listener();
  };

  async function required<T>(path: string, flag: string, read: Read<T>, onChange: () => void) {
    const followed = await followFile(path, flag, read, onChange, options);
    closers.push(followed.close);
    return followed;
  }
  async function optional<T>(path: string, read: Read<T>, onChange: () => void) {
    const followed = await followOptional(path, read, onChange, options);
    closers.push(followed.close);
    return followed;
  }
  const nothing = (): void => undefined;

  try {
    const current = await required(join(keyDirectory, 'current'), '--cache-key-dir', readKey, nothing);
    const previous = await optional(join(keyDirectory, 'previous'), readKey, nothing);
    const password =
      authDirectory === undefined
        ? undefined
        : await required(join(authDirectory, 'password'), '--cache-auth-dir', asItIs, changed);
    const username =
      authDirectory === undefined
        ? undefined
        : await optional(join(authDirectory, 'username'), asItIs, changed);
    const authorities =
      caFile === undefined ? undefined : await required(caFile, '--cache-ca-file', readBundle, changed);
    return {
      keys: () => ({ current: current.current(), previous: previous.current() }),
      access: () => ({
        authorities: authorities?.current(),
        username: username?.current(),
        password: password?.current(),
      }),
      onAccess(listener) {
        listeners.add(listener);
      },
      close() {
        for (const close of closers) close();
      },
    };
  } catch (error) {
    for (const close of closers) close();
    throw error;
  }
}

async function followFile<T>(
  path: string,
  key: string,
  read: Read<T>,
  onChange: () => void,
  { log, ...watching }: FollowOptions,
): Promise<Followed<T>> {
  const file = await openLiveSecret(dirname(path), [basename(path)], watching);
  const first = understood(file, path, read);
  if (typeof first === 'string') {
    file.close();
    throw new ConfigurationError([{ key, value: path, expected: `a usable file, but ${first}` }]);
  }
  let current = first.value;
  file.onChange(() => {
    const next = understood(file, path, read);
    if (typeof next === 'string') {
      log.error({ problem: next }, 'a file of the token cache not reloaded, the last good one stays');
      return;
    }
    current = next.value;
    log.info({ file: path }, 'a file of the token cache loaded');
    onChange();
  });
  return { current: () => current, close: () => file.close() };
}

/** One that is missing says nothing; one that cannot be used is not used, and the log says so. */
async function followOptional<T>(
  path: string,
  read: Read<T>,
  onChange: () => void,
  { log, ...watching }: FollowOptions,
): Promise<Followed<T | undefined>> {
  const file = await openLiveSecret(dirname(path), [basename(path)], watching);
  function now(): T | undefined {
    if (file.current().state === 'missing') return undefined;
    const reading = understood(file, path, read);
    if (typeof reading !== 'string') return reading.value;
    log.error({ problem: reading }, 'a file of the token cache is not used');
    return undefined;
  }
  let current = now();
  file.onChange(() => {
    current = now();
    onChange();
  });
  return { current: () => current, close: () => file.close() };
}

function understood<T>(file: LiveSecret, path: string, read: Read<T>): ReturnType<Read<T>> {
  const reading = file.current();
  if (reading.state !== 'loaded') return reading.detail;
  const understanding = read(reading.values[basename(path)] as string);
  return typeof understanding === 'string' ? `${path} ${understanding}` : understanding;
}

const asItIs: Read<string> = (text) => ({ value: text });

const readKey: Read<CacheKey> = (text) => {
  const bytes = Buffer.from(text, 'base64');
  // What is no base64 is left out by the decoder.
  const isWhole = bytes.length === SECRET_BYTES && bytes.toString('base64') === text.trim();
  return isWhole
    ? { value: deriveKey(bytes) }
    : 'is not 32 bytes in base64, as `openssl rand -base64 32` makes them';
};

const readBundle: Read<string> = (text) => {
  const parsed = parseAuthorities(text);
  return typeof parsed === 'string' ? `cannot be used: ${parsed}` : { value: parsed.pem };
};
