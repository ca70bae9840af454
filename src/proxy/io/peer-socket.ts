import { open } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { systemCodeOf } from '../../platform/errors.ts';
import { inHex, MAPPED, octetsOf } from '../../platform/net/socket-tables.ts';

/**
 * Whether a process holds the other end of a connection. `unlisted`: the kernel does not know that end, as when it is
 * on another machine. `unasked`: the kernel could not be asked this time. `unknown`: there is no table to ask.
 */
export type Peer = 'held' | 'left' | 'unlisted' | 'unasked' | 'unknown';

/** The sockets of this network namespace, which the containers of a pod share (proc_pid_net(5)). */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];

/** The kernel gives a page at a time. */
const PIECE_BYTES = 4096;

/**
 * Errors that mean there is no table: on another system, or without this address family. Others pass, such as a lack of
 * descriptors.
 */
const NO_TABLE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM']);

/** `whole`: all that the tables hold has been read. `broken`: less. `absent`: there is no table. */
export type TablesRead = 'whole' | 'broken' | 'absent';

/** Reads the tables of the kernel's sockets piece by piece. */
type ReadSocketTables = (take: (piece: Buffer) => void) => Promise<TablesRead>;

/**
 * What became of the peers of these connections, in their order. On the wire a process that has closed its socket, or
 * died, looks the same as one that has shut down only its sending side: both send a FIN. The kernel knows, but lists
 * all its sockets at once, which takes tens of milliseconds of another thread when there are many.
 */
export async function findPeers(
  accepted: readonly Socket[],
  readTables: ReadSocketTables = readSocketTables,
): Promise<readonly Peer[]> {
  const names = accepted.map(peerNames);
  const search = new PeerSearch(names.flat());
  const read = await readTables((piece) => search.read(piece));
  if (read === 'absent') return names.map(() => 'unknown');
  return names.map((those) => {
    const peer = search.peer(those);
    return peer === 'unlisted' && read === 'broken' ? 'unasked' : peer;
  });
}

/**
 * How the kernel's tables name the peer's end of a connection (proc_pid_net(5)): its address and port, then ours. The
 * peer of an IPv4 connection may be a socket for both families, which is listed by the mapped address. Empty where the
 * socket is closed.
 */
export function peerNames({ localAddress, localPort, remoteAddress, remotePort }: Socket): readonly string[] {
  if (localAddress === undefined || remoteAddress === undefined) return [];
  const here = octetsOf(localAddress);
  const there = octetsOf(remoteAddress);
  const nameOf = (from: readonly number[], to: readonly number[]): string =>
    `${inHex(from)}:${portInHex(remotePort as number)} ${inHex(to)}:${portInHex(localPort as number)}`;
  if (here.length === 4) return [nameOf(there, here), nameOf([...MAPPED, ...there], [...MAPPED, ...here])];
  return [nameOf(there, here)];
}

/**
 * Looks for sockets in the text of the kernel's tables, which comes in pieces. It reads only the name of a row: there
 * may be tens of thousands, most of them of connections that are over.
 */
class PeerSearch {
  readonly #found: Map<string, Peer>;
  #rest = '';

  /** @param names of the sockets looked for, as in `peerNames`. */
  constructor(names: Iterable<string>) {
    this.#found = new Map(Array.from(names, (name) => [name, 'unlisted']));
  }

  read(piece: Buffer): void {
    const text = this.#rest + piece.toString('latin1');
    let at = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', at)) {
      this.#readRow(text, at, end);
      at = end + 1;
    }
    this.#rest = text.slice(at);
  }

  /** What was found of a socket with any of these names. */
  peer(names: readonly string[]): Peer {
    for (const name of names) {
      const found = this.#found.get(name);
      if (found === 'held' || found === 'left') return found;
    }
    return 'unlisted';
  }

  /** `  12: 0100007F:3AE8 0100007F:D2F0 01 …`: number, local and remote end, state, and later the inode. */
  #readRow(row: string, start: number, end: number): void {
    const nameStart = row.indexOf(':', start) + 2;
    const nameEnd = row.indexOf(' ', row.indexOf(' ', nameStart) + 1);
    if (nameStart === 1 || nameEnd === -1 || nameEnd > end) return;
    const name = row.slice(nameStart, nameEnd);
    if (!this.#found.has(name)) return;
    const inode = row.slice(nameEnd + 1, end).split(/\s+/)[6];
    // A socket that no process holds has no inode.
    this.#found.set(name, inode === '0' ? 'left' : 'held');
  }
}

async function readSocketTables(take: (piece: Buffer) => void): Promise<TablesRead> {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  const reads: TablesRead[] = [];
  for (const path of TABLES) reads.push(await readTable(path, buffer, take));
  if (reads.includes('broken')) return 'broken';
  return reads.includes('whole') ? 'whole' : 'absent';
}

async function readTable(path: string, buffer: Buffer, take: (piece: Buffer) => void): Promise<TablesRead> {
  try {
    const file = await open(path);
    try {
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, buffer.length);
        if (bytesRead === 0) return 'whole';
        take(buffer.subarray(0, bytesRead));
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    return NO_TABLE.has(systemCodeOf(error)) ? 'absent' : 'broken';
  }
}

function portInHex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}
