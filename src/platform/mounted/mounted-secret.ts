/**
 * The kubelet swaps the `..data` link of a mounted Secret atomically. Files read through one resolved `..data` have the
 * same version.
 */

import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, systemCodeOf } from '../errors.ts';
import { type DirectoryWatchOptions, watchDirectory } from './directory-watch.ts';

/** Bytes. Larger files were mounted by mistake. */
const MAX_FILE_BYTES = 64 * 1024;

export type MountedSecret<Name extends string = string> = LoadedSecret<Name> | InvalidSecret;

interface LoadedSecret<Name extends string = string> {
  readonly state: 'loaded';
  readonly values: Readonly<Record<Name, string>>;
}

export interface InvalidSecret {
  readonly state: 'missing' | 'empty' | 'unreadable' | 'oversized' | 'malformed';
  /** Names the file, never its content. */
  readonly detail: string;
}

/** As UTF-8, without a trailing line end. Never throws. */
export async function readMountedSecret<const Name extends string>(
  directory: string,
  names: readonly Name[],
): Promise<MountedSecret<Name>> {
  const files = await readMountedFiles(directory, names);
  const values: Partial<Record<Name, string>> = {};
  for (const [name, file] of Object.entries<MountedFile>(files)) {
    if (typeof file !== 'string') return file;
    values[name as Name] = file;
  }
  return { state: 'loaded', values: values as Record<Name, string> };
}

export type MountedFile = string | InvalidSecret;

export type MountedFiles<Name extends string = string> = Readonly<Record<Name, MountedFile>>;

/** Some may be missing. */
async function readMountedFiles<const Name extends string>(
  directory: string,
  names: readonly Name[],
): Promise<MountedFiles<Name>> {
  let version = await currentVersion(directory);
  for (;;) {
    const files = await readVersion(version, directory, names);
    if (Object.values<MountedFile>(files).every((file) => typeof file === 'string')) return files;
    // The kubelet removes the old version after a swap.
    const newer = await currentVersion(directory);
    if (newer === version) return files;
    version = newer;
  }
}

async function readVersion<Name extends string>(
  version: string,
  directory: string,
  names: readonly Name[],
): Promise<MountedFiles<Name>> {
  const files: Partial<Record<Name, MountedFile>> = {};
  for (const name of names) files[name] = await readBounded(join(version, name), join(directory, name));
  return files as Record<Name, MountedFile>;
}

/** The kubelet rewrites files without changing them. */
function sameSecret(a: MountedSecret, b: MountedSecret): boolean {
  if (a.state !== 'loaded' || b.state !== 'loaded') {
    return a.state !== 'loaded' && b.state !== 'loaded' && sameFile(a, b);
  }
  return sameFiles(a.values, b.values);
}

function sameFiles(a: MountedFiles, b: MountedFiles): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => sameFile(a[name], b[name]));
}

function sameFile(a: MountedFile | undefined, b: MountedFile | undefined): boolean {
  if (typeof a !== 'object' || typeof b !== 'object') return a === b;
  return a.state === b.state && a.detail === b.detail;
}

async function currentVersion(directory: string): Promise<string> {
  try {
    return await realpath(join(directory, '..data'));
  } catch {
    // A plain directory, or none.
    return directory;
  }
}

/** @param namedAs the path for messages. */
async function readBounded(path: string, namedAs: string): Promise<string | InvalidSecret> {
  try {
    // Non-blocking, so that a named pipe is refused below.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const status = await file.stat();
      if (!status.isFile()) return { state: 'unreadable', detail: `${namedAs} is not a regular file` };
      const buffer = Buffer.alloc(MAX_FILE_BYTES + 1);
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
      if (bytesRead > MAX_FILE_BYTES) {
        return { state: 'oversized', detail: `${namedAs} is larger than ${MAX_FILE_BYTES} bytes` };
      }
      return decode(buffer.subarray(0, bytesRead), namedAs);
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR')
      return { state: 'missing', detail: `${namedAs} does not exist` };
    return { state: 'unreadable', detail: `${namedAs} cannot be read: ${code ?? messageOf(error)}` };
  }
}

function decode(bytes: Buffer, namedAs: string): string | InvalidSecret {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { state: 'malformed', detail: `${namedAs} is not UTF-8` };
  }
  const value = text.replace(/\r?\n$/, '');
  return value === '' ? { state: 'empty', detail: `${namedAs} is empty` } : value;
}

/** Its message names the file and holds no content. */
export class InvalidFile extends Error {}

interface LiveResult<ReadResult> {
  readonly directory: string;
  current(): ReadResult;
  /** Resolves when `current` is as new as this call. Never rejects. */
  refresh(): Promise<void>;
  /** Calls back after each change, good or bad. Returns a function that stops it. */
  onChange(listener: (reading: ReadResult) => void): () => void;
  close(): void;
}

type LiveSecret<Name extends string = string> = LiveResult<MountedSecret<Name>>;

/** Some may be missing. */
type LiveFiles<Name extends string = string> = LiveResult<MountedFiles<Name>>;

/** Never rejects: a missing Secret is a reading, too. */
export async function openLiveSecret<const Name extends string>(
  directory: string,
  names: readonly Name[],
  options: DirectoryWatchOptions,
): Promise<LiveSecret<Name>> {
  return await follow(directory, () => readMountedSecret(directory, names), sameSecret, options);
}

/** Some files may be missing. Never rejects. */
export async function openLiveFiles<const Name extends string>(
  directory: string,
  names: readonly Name[],
  options: DirectoryWatchOptions,
): Promise<LiveFiles<Name>> {
  return await follow(directory, () => readMountedFiles(directory, names), sameFiles, options);
}

async function follow<ReadResult>(
  directory: string,
  read: () => Promise<ReadResult>,
  same: (a: ReadResult, b: ReadResult) => boolean,
  options: DirectoryWatchOptions,
): Promise<LiveResult<ReadResult>> {
  const listeners = new Set<(reading: ReadResult) => void>();
  let current = await read();
  let looking: Promise<void> | undefined;
  let lookAgain = false;
  let closed = false;

  function look(): Promise<void> {
    lookAgain = true;
    looking ??= readUntilSettled().finally(() => {
      looking = undefined;
    });
    return looking;
  }

  async function readUntilSettled(): Promise<void> {
    while (lookAgain && !closed) {
      lookAgain = false;
      const next = await read();
      if (closed || same(current, next)) continue;
      current = next;
      for (const listener of listeners) listener(next);
    }
  }

  const unwatch = watchDirectory(directory, options, () => void look());
  // A change may have come before the watch.
  await look();

  return {
    directory,
    current: () => current,
    refresh: look,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close() {
      closed = true;
      unwatch();
      listeners.clear();
    },
  };
}
