/** Reads files that the operator names, without endless waits or a full memory. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';

/** Bytes; no certificate, bundle or key is larger. */
export const MAX_PEM_BYTES = 1024 * 1024;

/** A ConfigMap's limit. */
const MAX_CONFIG_BYTES = 1024 * 1024;

/** Non-blocking, so that a named pipe is refused. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * @throws {Error} with a sentence if it is not a regular file or is too large; the system's error if it cannot be read.
 */
export async function readBoundedFile(path: string, maxBytes: number): Promise<string> {
  const file = await open(path, FLAGS);
  try {
    const { size } = measured(await file.stat(), maxBytes);
    const buffer = Buffer.alloc(size + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return textOf(buffer, length);
  } finally {
    await file.close();
  }
}

/** Throws what `readBoundedFile` rejects with. */
export function readBoundedFileSync(path: string, maxBytes: number): string {
  const fd = openSync(path, FLAGS);
  try {
    const { size } = measured(fstatSync(fd), maxBytes);
    const buffer = Buffer.alloc(size + 1);
    let length = 0;
    while (length < buffer.length) {
      const bytesRead = readSync(fd, buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return textOf(buffer, length);
  } finally {
    closeSync(fd);
  }
}

interface Status {
  readonly size: number;
  isFile(): boolean;
}

function measured(status: Status, maxBytes: number): Status {
  if (!status.isFile()) throw new Error('it is no regular file');
  if (status.size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
  return status;
}

function textOf(buffer: Buffer, length: number): string {
  if (length === buffer.length) throw new Error('it grew while it was read');
  return buffer.toString('utf8', 0, length);
}

/** @throws {Error} with a sentence, or the system's, if it cannot be read or exceeds a ConfigMap. */
export function readConfigText(path: string): Promise<string> {
  return readBoundedFile(path, MAX_CONFIG_BYTES);
}
