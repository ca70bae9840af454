/** The files mounted for the cache: its key, and its store's login and CAs. */

import { basename, dirname, join, resolve } from 'node:path';
import { type Logger, withoutRepeatLimit } from '../../platform/log/logger.ts';
import type { DirectoryWatchOptions } from '../../platform/mounted/directory-watch.ts';
import { type MountedFile, type MountedFiles, openLiveFiles } from '../../platform/mounted/mounted-secret.ts';
import { ConfigurationError, type Problem } from '../../platform/problems.ts';
import { parseAuthorities } from '../../platform/x509/pem.ts';
import type { StoreAccess } from './redis-store.ts';
import { type CacheKey, deriveKey, SECRET_BYTES } from './sealed-token.ts';
import type { CacheKeys } from './token-cache.ts';

interface MountedAccess {
  keys(): CacheKeys;
  access(): StoreAccess;
  /** After a change of the login or the CAs. */
  onAccess(listener: () => void): void;
  close(): void;
}

interface AccessFiles {
  readonly keyDirectory: string;
  readonly authDirectory?: string | undefined;
  readonly caFile?: string | undefined;
}

interface FollowOptions extends DirectoryWatchOptions {
  readonly log: Logger;
}

interface Contents {
  readonly current?: CacheKey;
  readonly previous?: CacheKey;
  readonly username?: string;
  readonly password?: string;
  readonly authorities?: string;
}

interface WantedFile {
  readonly path: string;
  readonly key: string;
  /** An unusable `dispensable` file is ignored with a warning. */
  readonly need: 'required' | 'optional' | 'dispensable';
  /** Returns the meaning of a text, or what is wrong with it. */
  readonly read: (text: string) => Contents | string;
}

interface FollowedDirectory {
  contents(): Contents;
  close(): void;
}

interface Understanding {
  readonly contents: Contents;
  readonly faults: readonly Fault[];
  readonly unused: readonly Fault[];
}

interface Fault {
  readonly file: WantedFile;
  readonly why: string;
}

/**
 * Files of one directory are used together, so that a new password never goes with the previous user.
 * @throws {ConfigurationError} if a file is unusable from the start.
 */
export async function watchAccess(files: AccessFiles, options: FollowOptions): Promise<MountedAccess> {
  const directories: FollowedDirectory[] = [];
  const listeners = new Set<() => void>();
  const problems: Problem[] = [];
  const close = (): void => {
    for (const directory of directories) directory.close();
  };
  const contents = (): Contents => Object.assign({}, ...directories.map((directory) => directory.contents()));
  const onAccessChange = (): void => {
    for (const listener of listeners) listener();
  };

  for (const [directory, wanted] of byDirectory(wantedFiles(files))) {
    directories.push(await watchDirectory(directory, wanted, problems, onAccessChange, options));
  }
  if (problems.length > 0) {
    close();
    throw new ConfigurationError(problems);
  }
  return {
    keys() {
      const { current, previous } = contents();
      return { current: current as CacheKey, previous };
    },
    access() {
      const { authorities, username, password } = contents();
      return { authorities, username, password };
    },
    onAccess(listener) {
      listeners.add(listener);
    },
    close,
  };
}

function wantedFiles({ keyDirectory, authDirectory, caFile }: AccessFiles): WantedFile[] {
  const wanted: WantedFile[] = [
    {
      path: join(keyDirectory, 'current'),
      key: '--cache-key-dir',
      need: 'required',
      read: keyAs('current'),
    },
    {
      path: join(keyDirectory, 'previous'),
      key: '--cache-key-dir',
      // Without it there is one more grant.
      need: 'dispensable',
      read: keyAs('previous'),
    },
  ];
  if (authDirectory !== undefined) {
    const key = '--cache-auth-dir';
    wanted.push(
      { path: join(authDirectory, 'password'), key, need: 'required', read: (password) => ({ password }) },
      { path: join(authDirectory, 'username'), key, need: 'optional', read: (username) => ({ username }) },
    );
  }
  if (caFile !== undefined) {
    wanted.push({ path: caFile, key: '--cache-ca-file', need: 'required', read: readBundle });
  }
  return wanted;
}

function byDirectory(files: readonly WantedFile[]): Map<string, WantedFile[]> {
  return Map.groupBy(files, ({ path }) => dirname(resolve(path)));
}

/** Mistakes in the first reading are added to `problems`. */
async function watchDirectory(
  path: string,
  wanted: readonly WantedFile[],
  problems: Problem[],
  onAccessChange: () => void,
  { log, ...watching }: FollowOptions,
): Promise<FollowedDirectory> {
  const names = wanted.map((file) => basename(file.path));
  const files = await openLiveFiles(path, names, watching);

  function understand(reading: MountedFiles): Understanding {
    const understanding = understandFiles(reading, wanted);
    for (const { why } of understanding.unused) {
      withoutRepeatLimit(log).error({ problem: why }, 'a file of the token cache is not used');
    }
    return understanding;
  }

  const first = understand(files.current());
  for (const { file, why } of first.faults) {
    problems.push({ key: file.key, value: file.path, expected: `a usable file, but ${why}` });
  }
  let { contents } = first;
  files.onChange((reading) => {
    const next = understand(reading);
    if (next.faults.length > 0) {
      const problem = next.faults.map(({ why }) => why).join('; ');
      withoutRepeatLimit(log).error(
        { problem },
        'files of the token cache not reloaded, the last good ones stay',
      );
      return;
    }
    const isAccessChanged = ACCESS.some((name) => next.contents[name] !== contents[name]);
    contents = next.contents;
    log.info({ directory: path }, 'files of the token cache loaded');
    if (isAccessChanged) onAccessChange();
  });
  return { contents: () => contents, close: () => files.close() };
}

const ACCESS = ['username', 'password', 'authorities'] as const;

function understandFiles(reading: MountedFiles, wanted: readonly WantedFile[]): Understanding {
  const contents: Contents = {};
  const faults: Fault[] = [];
  const unused: Fault[] = [];
  for (const file of wanted) {
    const text = reading[basename(file.path)] as MountedFile;
    if (file.need !== 'required' && isNothing(text)) continue;
    const said = typeof text === 'string' ? file.read(text) : text.detail;
    if (typeof said !== 'string') {
      Object.assign(contents, said);
      continue;
    }
    const why = typeof text === 'string' ? `${file.path} ${said}` : said;
    (file.need === 'dispensable' ? unused : faults).push({ file, why });
  }
  return { contents, faults, unused };
}

function isNothing(file: MountedFile): boolean {
  return typeof file !== 'string' && (file.state === 'missing' || file.state === 'empty');
}

function readKey(text: string): CacheKey | string {
  const bytes = Buffer.from(text, 'base64');
  // The decoder skips what is not base64.
  const isWhole = bytes.length === SECRET_BYTES && bytes.toString('base64') === text.trim();
  return isWhole ? deriveKey(bytes) : 'is not 32 bytes in base64, as `openssl rand -base64 32` makes them';
}

function keyAs(name: 'current' | 'previous'): WantedFile['read'] {
  return (text) => {
    const key = readKey(text);
    return typeof key === 'string' ? key : { [name]: key };
  };
}

function readBundle(text: string): Contents | string {
  const parsed = parseAuthorities(text);
  return typeof parsed === 'string' ? `cannot be used: ${parsed}` : { authorities: parsed.pem };
}
