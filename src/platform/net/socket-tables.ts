/** The kernel's tables of sockets (proc_pid_net(5)). */

import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { endianness } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';
import { systemCodeOf } from '../errors.ts';

/** Of this network namespace. */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];

/** The kernel gives no more at a time. */
const PAGE_BYTES = 4096;

/** A busy process would take seconds with one. */
const PAGES_A_TURN = 16;

/** On another system, or without this address family. Other errors pass. */
const NO_TABLE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM']);

/** `whole`: all was read. `broken`: less. `absent`: there is no table. */
type TablesRead = 'whole' | 'broken' | 'absent';

export type ReadSocketTables = (take: (piece: Buffer) => void) => Promise<TablesRead>;

interface KernelSocket {
  readonly isOpen: boolean;
  /** Sent but not acknowledged; the end counts as one. */
  readonly unsentBytes: number;
  /** That, and received but not read. */
  readonly queuedBytes: number;
}

export interface ConnectionEnds {
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

type End = 'ours' | 'peers';

/**
 * An end's address and port, then the peer's. A socket for both families is listed by its mapped address. Empty if the
 * socket is closed.
 */
export function socketNames(
  { localAddress, localPort, remoteAddress, remotePort }: ConnectionEnds,
  end: End,
): readonly string[] {
  if (localAddress === undefined || remoteAddress === undefined) return [];
  const here = kernelAddress.octetsOf(localAddress);
  const there = kernelAddress.octetsOf(remoteAddress);
  const nameOf = (ours: readonly number[], peers: readonly number[]): string => {
    const names = [
      `${kernelAddress.inHex(ours)}:${portInHex(localPort as number)}`,
      `${kernelAddress.inHex(peers)}:${portInHex(remotePort as number)}`,
    ];
    return (end === 'ours' ? names : names.reverse()).join(' ');
  };
  if (here.length === 4)
    return [
      nameOf(here, there),
      nameOf([...kernelAddress.mapped, ...here], [...kernelAddress.mapped, ...there]),
    ];
  return [nameOf(here, there)];
}

/** Finds sockets in the text of the tables. There may be tens of thousands of other rows. */
export class SocketSearch {
  readonly #names: ReadonlySet<string>;
  readonly #found = new Map<string, KernelSocket>();
  #rest = '';

  /** @param names from `socketNames`. */
  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
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

  socket(names: readonly string[]): KernelSocket | undefined {
    for (const name of names) {
      const socket = this.#found.get(name);
      if (socket !== undefined) return socket;
    }
    return undefined;
  }

  /** `  12: 0100007F:3AE8 0100007F:D2F0 01 00000000:00000000 …`: number, ends, state, queues, later the inode. */
  #readRow(row: string, start: number, end: number): void {
    const nameStart = row.indexOf(':', start) + 2;
    const nameEnd = row.indexOf(' ', row.indexOf(' ', nameStart) + 1);
    if (nameStart === 1 || nameEnd === -1 || nameEnd > end) return;
    const name = row.slice(nameStart, nameEnd);
    if (!this.#names.has(name)) return;
    const [, queues = '', , , , , inode] = row.slice(nameEnd + 1, end).split(/\s+/);
    const [sending = 0, received = 0] = queues.split(':').map((hex) => Number.parseInt(hex, 16));
    // A socket that no process holds has no inode.
    this.#found.set(name, {
      isOpen: inode !== '0',
      unsentBytes: sending,
      queuedBytes: sending + received,
    });
  }
}

/** Takes a millisecond of many turns where there are many sockets. */
export async function readSocketTables(take: (piece: Buffer) => void): Promise<TablesRead> {
  const reads: TablesRead[] = [];
  for (const path of TABLES) reads.push(await readTable(path, take));
  return allOf(reads);
}

/** In one turn, which may take tens of milliseconds. */
export function readSocketTablesAtOnce(take: (piece: Buffer) => void): TablesRead {
  return allOf(
    TABLES.map((path) => {
      try {
        take(readFileSync(path));
        return 'whole';
      } catch (error) {
        return unread(error);
      }
    }),
  );
}

function allOf(reads: readonly TablesRead[]): TablesRead {
  if (reads.includes('broken')) return 'broken';
  return reads.includes('whole') ? 'whole' : 'absent';
}

function unread(error: unknown): TablesRead {
  return NO_TABLE.has(systemCodeOf(error)) ? 'absent' : 'broken';
}

async function readTable(path: string, take: (piece: Buffer) => void): Promise<TablesRead> {
  const page = Buffer.allocUnsafe(PAGE_BYTES);
  try {
    const file = openSync(path, 'r');
    try {
      for (let pages = 1; ; pages++) {
        const length = readSync(file, page, 0, page.length, null);
        if (length === 0) return 'whole';
        take(page.subarray(0, length));
        if (pages % PAGES_A_TURN === 0) await turn();
      }
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return unread(error);
  }
}

function portInHex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}

export const kernelAddress = {
  /** `::ffff:0:0/96` */
  mapped: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff],

  octetsOf(address: string): number[] {
    if (isIPv4(address)) return address.split('.').map(Number);
    const plain = address.replace(/%.*$/, '').replace(/[\d.]+\.\d+$/, (ipv4) => {
      const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
      return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
    });
    const [front = [], back] = plain.split('::').map((half) => (half === '' ? [] : half.split(':')));
    const zeros = back === undefined ? [] : new Array(8 - front.length - back.length).fill('0');
    const octets = [...front, ...zeros, ...(back ?? [])].flatMap((group) => {
      const value = Number.parseInt(group, 16);
      return [value >> 8, value & 0xff];
    });
    const mapped = kernelAddress.mapped.every((octet, index) => octets[index] === octet);
    return mapped ? octets.slice(kernelAddress.mapped.length) : octets;
  },

  /** In 32-bit numbers of the machine's byte order. */
  inHex(octets: readonly number[]): string {
    let hex = '';
    for (let at = 0; at < octets.length; at += 4) {
      const word = octets.slice(at, at + 4);
      if (LITTLE_ENDIAN) word.reverse();
      hex += Buffer.from(word).toString('hex').toUpperCase();
    }
    return hex;
  },
};

const LITTLE_ENDIAN = endianness() === 'LE';
