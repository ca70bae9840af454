import { constants, openSync, writeSync } from 'node:fs';
import { systemCodeOf } from '../errors.ts';
import type { LogTarget } from './output.ts';

/**
 * Standard output, written without waiting for whoever reads it.
 *
 * - Pipe or socket: Node has made it non-blocking as soon as `stdout` exists.
 * - Terminal: Node writes to it blocking, so Ctrl-S would halt the program. It is opened a second time, non-blocking,
 *   which leaves the shell's own alone.
 * - File: writes do not wait for a reader.
 */
export function openStandardOutput(stdout: NodeJS.WriteStream): LogTarget {
  const fd = stdout.isTTY ? reopenedTerminal() : 1;
  return {
    write(bytes) {
      try {
        return writeSync(fd, bytes);
      } catch (error) {
        if (systemCodeOf(error) === 'EAGAIN') return 0;
        throw error;
      }
    },
  };
}

function reopenedTerminal(): number {
  try {
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    // Outside Linux, or for another user's terminal: the existing one.
    return 1;
  }
}
