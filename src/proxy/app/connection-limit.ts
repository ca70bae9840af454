import { readFileSync } from 'node:fs';

/**
 * Descriptors reserved for all but connections of the data path: the admin listener takes at most 192, the one that
 * gives out tokens 64, and connections being refused 16; the rest is for providers, files and Node itself.
 */
const RESERVED_DESCRIPTORS = 384;

const OPEN_FILES = /^Max open files\s+(\d+)/m;

/**
 * How many connections of the app may be open at once: half of what the process has descriptors for, since each may take
 * a connection upstream; fewer where that is configured. No bound where the system names none.
 * @param limits the text of `/proc/self/limits` (proc_pid_limits(5)); undefined where there is none.
 */
export function mostConnections(configured: number | undefined, limits: string | undefined): number {
  const files = OPEN_FILES.exec(limits ?? '')?.[1];
  const possible =
    files === undefined ? Number.POSITIVE_INFINITY : Math.floor((Number(files) - RESERVED_DESCRIPTORS) / 2);
  return Math.max(1, Math.min(possible, configured ?? Number.POSITIVE_INFINITY));
}

/** What one connection over TLS takes while it is idle. The largest unfinished head takes twice as much, on top. */
const SECURED_CONNECTION_BYTES = 64 * 1024;

/**
 * The memory that the process may take. No bound where the system names none.
 * @param constrainedBytes as `process.constrainedMemory` says: 0, or more than there is, where nothing bounds the process.
 */
export function memoryLimit(constrainedBytes: number, totalBytes: number): number {
  return constrainedBytes === 0 || constrainedBytes > totalBytes
    ? Number.POSITIVE_INFINITY
    : constrainedBytes;
}

/** How many connections over TLS may be open at once, for half of the memory. */
export function connectionsInMemory(limitBytes: number): number {
  return Math.max(1, Math.floor(limitBytes / 2 / SECURED_CONNECTION_BYTES));
}

export function processLimits(): string | undefined {
  try {
    return readFileSync('/proc/self/limits', 'latin1');
  } catch {
    // Not Linux.
    return undefined;
  }
}
