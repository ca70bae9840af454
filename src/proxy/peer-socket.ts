import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

/** The kernel's sockets of this network namespace, which the containers of a pod share (proc_pid_net(5)). */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];

/** IPv4 as a socket for both families has it. */
const MAPPED = /^0{16}FFFF0{4}/;

/** Addresses are in the kernel's own hexadecimal notation. */
interface Row {
  readonly local: string;
  readonly remote: string;
  readonly inode: string;
}

/** Rows by their local and remote port. */
type Sockets = ReadonlyMap<string, readonly Row[]>;

const NOBODY: readonly Row[] = [];

/**
 * Whether a process still holds the other end of an established connection. On the wire a process that has closed its
 * socket, or died, cannot be told from one that has shut down its sending side alone: both send a FIN. The kernel knows:
 * nobody's socket has no inode. False where it cannot be found out, because the peer is on another machine or the
 * system is not Linux.
 */
export function isHeldByPeer({ localPort, remotePort }: Socket): boolean {
  if (localPort === undefined || remotePort === undefined) return false;
  const here = portInHex(localPort);
  const there = portInHex(remotePort);
  const sockets = socketsOfThisTurn();
  const own = sockets.get(`${here} ${there}`) ?? NOBODY;
  // The same two ports may connect other addresses: then all of them have to be held.
  const peers = (sockets.get(`${there} ${here}`) ?? NOBODY).filter(({ local, remote }) =>
    own.some((row) => row.local === remote && row.remote === local),
  );
  return peers.length > 0 && peers.every(({ inode }) => inode !== '0');
}

let sockets: Sockets | undefined;

/** Read once for all that ask in one turn of the event loop: an app that dies ends hundreds of connections at once. */
function socketsOfThisTurn(): Sockets {
  if (sockets === undefined) {
    sockets = readSockets();
    setImmediate(() => {
      sockets = undefined;
    });
  }
  return sockets;
}

function readSockets(): Sockets {
  const byPorts = new Map<string, Row[]>();
  for (const path of TABLES) {
    for (const line of linesOf(path)) {
      const [, local, remote, , , , , , , inode] = line.trim().split(/\s+/);
      if (local === undefined || remote === undefined || inode === undefined) continue;
      const [localAddress = '', localPort] = local.split(':');
      const [remoteAddress = '', remotePort] = remote.split(':');
      const key = `${localPort} ${remotePort}`;
      const row = {
        local: localAddress.replace(MAPPED, ''),
        remote: remoteAddress.replace(MAPPED, ''),
        inode,
      };
      const rows = byPorts.get(key);
      if (rows === undefined) byPorts.set(key, [row]);
      else rows.push(row);
    }
  }
  return byPorts;
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'latin1').split('\n').slice(1);
  } catch {
    // Not Linux, or without this family: what is not in a table is not found.
    return [];
  }
}

function portInHex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}
