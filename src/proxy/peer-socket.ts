import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

/** The kernel's sockets of this network namespace, which the containers of a pod share (proc_pid_net(5)). */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];

/** IPv4 as a socket for both families has it. */
const MAPPED = /^0{16}FFFF0{4}/;

/** Addresses are `ADDRESS:PORT` in the kernel's own hexadecimal notation. */
interface Row {
  readonly local: string;
  readonly remote: string;
  readonly inode: string;
}

/**
 * Whether a process still holds the other end of an established connection. On the wire a process that has closed its
 * socket, or died, cannot be told from one that has shut down its sending side alone: both send a FIN. The kernel knows:
 * nobody's socket has no inode. False where it cannot be found out, because the peer is on another machine or the
 * system is not Linux.
 */
export function isHeldByPeer({ localPort, remotePort }: Socket): boolean {
  if (localPort === undefined || remotePort === undefined) return false;
  const rows = TABLES.flatMap(readTable);
  const here = `:${portInHex(localPort)}`;
  const there = `:${portInHex(remotePort)}`;
  const own = rows.filter(({ local, remote }) => local.endsWith(here) && remote.endsWith(there));
  // The same two ports may connect other addresses: then all of them have to be held.
  const peers = rows.filter(({ local, remote }) =>
    own.some((row) => row.local === remote && row.remote === local),
  );
  return peers.length > 0 && peers.every(({ inode }) => inode !== '0');
}

function readTable(path: string): Row[] {
  let text: string;
  try {
    text = readFileSync(path, 'latin1');
  } catch {
    // Not Linux, or without this family: what is not in a table is not found.
    return [];
  }
  return text
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns.length > 9)
    .map((columns) => ({
      local: (columns[1] as string).replace(MAPPED, ''),
      remote: (columns[2] as string).replace(MAPPED, ''),
      inode: columns[9] as string,
    }));
}

function portInHex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}
