import { readFileSync } from 'node:fs';

/**
 * The admin listener takes at most 192, the token endpoint 64, and connections being refused 16. The rest is for
 * providers, files and Node.
 */
const RESERVED_DESCRIPTORS = 384;

const OPEN_FILES = /^Max open files\s+(\d+)/m;

/**
 * Half of the process's descriptors, since each may take a connection upstream; or fewer if configured. No bound if the
 * system names none.
 * @param limits the text of `/proc/self/limits` (proc_pid_limits(5)), if there is one.
 */
export function mostConnections(configured: number | undefined, limits: string | undefined): number {
  const files = OPEN_FILES.exec(limits ?? '')?.[1];
  const possible =
    files === undefined ? Number.POSITIVE_INFINITY : Math.floor((Number(files) - RESERVED_DESCRIPTORS) / 2);
  return Math.max(1, Math.min(possible, configured ?? Number.POSITIVE_INFINITY));
}

/** Of an idle TLS connection. The largest unfinished head takes twice as much, on top. */
const SECURED_CONNECTION_BYTES = 64 * 1024;

/**
 * Infinite if the system names none.
 * @param constrainedBytes by `process.constrainedMemory`: 0, or more than there is, if nothing bounds the process.
 */
export function memoryLimit(constrainedBytes: number, totalBytes: number): number {
  return constrainedBytes === 0 || constrainedBytes > totalBytes
    ? Number.POSITIVE_INFINITY
    : constrainedBytes;
}

/** For half of the memory, over TLS. */
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
