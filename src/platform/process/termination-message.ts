/** The file from which the kubelet takes an ended container's message. */

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { systemCodeOf } from '../errors.ts';
import type { Logger } from '../log/logger.ts';

/** Where Kubernetes mounts it, even if the rest of the file system is read-only. */
export const TERMINATION_LOG = '/dev/termination-log';

/** Of the 4096 bytes that the kubelet takes. */
const LONGEST = 2048;

/** Only if the file already exists: elsewhere nobody reads it. Non-blocking, so that a pipe is not waited for. */
const FLAGS = constants.O_WRONLY | constants.O_TRUNC | constants.O_NONBLOCK;

/** Never rejects: the message is in the log as well. */
export async function leaveTerminationMessage(path: string, message: string, log?: Logger): Promise<void> {
  try {
    const file = await open(path, FLAGS);
    try {
      if ((await file.stat()).isFile()) await file.write(message.slice(0, LONGEST));
    } finally {
      await file.close();
    }
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') log?.warn({ err: error, path }, 'no termination message left');
  }
}
