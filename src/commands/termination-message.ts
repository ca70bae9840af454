/** The file from which the kubelet takes the message of a container that has ended. */

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { systemCodeOf } from '../errors.ts';
import type { Logger } from '../log/logger.ts';

/** Where Kubernetes mounts it, also where the rest of the file system is read-only. */
export const TERMINATION_LOG = '/dev/termination-log';

/** Of the 4096 bytes that the kubelet takes. */
const LONGEST = 2048;

/** Only where the file is there already: elsewhere nobody reads it. Non-blocking, so that a pipe is not waited for. */
const FLAGS = constants.O_WRONLY | constants.O_TRUNC | constants.O_NONBLOCK;

/** Never rejects: what cannot be written there is in the log as well. */
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
