import type { Socket } from 'node:net';
import {
  type ReadSocketTables,
  readSocketTables,
  SocketSearch,
  socketNames,
} from '../../platform/net/socket-tables.ts';

/**
 * Whether a process holds the other end. `unlisted`: it is not on this machine. `unasked`: the kernel could
 * not be asked. `unknown`: there is no table.
 */
export type Peer = 'held' | 'left' | 'unlisted' | 'unasked' | 'unknown';

/** A FIN does not tell a closed socket from a closed sending side; the kernel knows. Answers in order. */
export async function findPeers(
  accepted: readonly Socket[],
  readTables: ReadSocketTables = readSocketTables,
): Promise<readonly Peer[]> {
  const names = accepted.map((socket) => socketNames(socket, 'peers'));
  const search = new SocketSearch(names.flat());
  const read = await readTables((piece) => search.read(piece));
  if (read === 'absent') return names.map(() => 'unknown');
  return names.map((those) => {
    const peer = search.socket(those);
    if (peer !== undefined) return peer.isOpen ? 'held' : 'left';
    return read === 'broken' ? 'unasked' : 'unlisted';
  });
}
