/** What the kernel holds for connections: what was sent that the peer has not taken, and what came that was not read yet. */

import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { systemCodeOf } from '../platform/errors.ts';
import { readSocketTablesAtOnce, SocketSearch, socketNames } from '../platform/net/socket-tables.ts';

/** Of the control group of version 2 that a container sees as its own. Those of version 1 charge nobody for sockets. */
const STATISTICS = '/sys/fs/cgroup/memory.stat';

/** What counts against the memory limit for the buffers of sockets, in bytes; 0 where they do not count. */
export function chargedForSockets(statistics = STATISTICS): number {
  try {
    return Number(/^sock (\d+)$/m.exec(readFileSync(statistics, 'latin1'))?.[1] ?? 0);
  } catch (error) {
    if (systemCodeOf(error) === undefined) throw error;
    return 0;
  }
}

/**
 * What waits in the buffers of sockets, in bytes, for each of their owners; less than is charged, which includes how it is
 * kept. Takes up to tens of milliseconds.
 */
export function queuedInKernel<Owner>(
  sockets: ReadonlyMap<Owner, readonly Socket[]>,
): ReadonlyMap<Owner, number> {
  const names = new Map(
    Array.from(sockets, ([owner, own]) => [owner, own.map((socket) => socketNames(socket, 'ours'))]),
  );
  const search = new SocketSearch([...names.values()].flat(2));
  readSocketTablesAtOnce((piece) => search.read(piece));
  return new Map(
    Array.from(names, ([owner, own]) => [
      owner,
      own.reduce((bytes, those) => bytes + (search.socket(those)?.queuedBytes ?? 0), 0),
    ]),
  );
}
