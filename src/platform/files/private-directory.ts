/** A directory for one process. Removes those of killed processes. */

import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { basename, join } from 'node:path';
import { messageOf, SidecarError } from '../errors.ts';

interface PrivateDirectory {
  readonly path: string;
  remove(): Promise<void>;
}

const PREFIX = 'broker-';

/** For a directory that has no sign of life yet. */
const NEW_PREFIX = 'new-';

/** A socket that answers while the process lives, even in another container. */
const SIGN_OF_LIFE = 'live';

/** Linux has 107 bytes for a socket's address (`unix(7)`). */
const MAX_PARENT_BYTES = 107 - '/broker-123456/live'.length;

/** @throws {SidecarError} `configuration` if it cannot be made. */
export async function makePrivateDirectory(parent: string): Promise<PrivateDirectory> {
  if (Buffer.byteLength(parent) > MAX_PARENT_BYTES) {
    const expected = `a path of at most ${MAX_PARENT_BYTES} bytes`;
    throw new SidecarError('configuration', `--secrets-dir: ${parent}: expected ${expected}`);
  }
  try {
    await mkdir(parent, { recursive: true });
    for (const name of await readdir(parent)) {
      const path = join(parent, name);
      if (name.startsWith(PREFIX) && !(await isInUse(path))) await rm(path, { recursive: true, force: true });
    }
    const made = await mkdtemp(join(parent, NEW_PREFIX));
    await chmod(made, 0o700);
    const sign = await showLife(join(made, SIGN_OF_LIFE));
    const path = join(parent, basename(made).replace(NEW_PREFIX, PREFIX));
    await rename(made, path);
    return {
      path,
      async remove() {
        sign.close();
        await rm(path, { recursive: true, force: true });
      },
    };
  } catch (error) {
    throw new SidecarError(
      'configuration',
      `--secrets-dir: ${parent}: expected a directory that can be written in: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

function showLife(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => void socket.destroy());
    server.once('error', reject);
    server.listen(path, () => resolve(server));
    server.unref();
  });
}

/** If in doubt, true. */
function isInUse(directory: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(join(directory, SIGN_OF_LIFE));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code !== 'ENOENT' && code !== 'ECONNREFUSED' && code !== 'ENOTSOCK'),
    );
  });
}
