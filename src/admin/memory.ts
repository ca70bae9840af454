import { readFileSync } from 'node:fs';

/** In bytes. */
export interface MemoryUse {
  readonly residentBytes: number;
  /** The part of it that is this process's own, without shared program text or files; undefined outside Linux. */
  readonly anonymousBytes: number | undefined;
}

/** Reads the kernel's own figures (proc(5), `/proc/pid/status`). */
export function readMemoryUse(): MemoryUse {
  return { residentBytes: process.memoryUsage.rss(), anonymousBytes: readAnonymousBytes() };
}

function readAnonymousBytes(): number | undefined {
  let status: string;
  try {
    status = readFileSync('/proc/self/status', 'latin1');
  } catch {
    // Not Linux: the figure is left out.
    return undefined;
  }
  const kibibytes = /^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1];
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
}
