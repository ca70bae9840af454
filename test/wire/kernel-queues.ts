import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

/** `tr` of a connection whose peer has closed its window, with nothing on its way: the kernel only asks, now and then. */
const PROBES_CLOSED_WINDOW = '04';

/** What the kernel holds for one end of a TCP connection (proc(5), `/proc/net/tcp`). */
export interface KernelQueues {
  /** Bytes written that the peer's kernel has not taken. */
  readonly unsent: number;
  /** Bytes that came and that nobody has read. */
  readonly unread: number;
  /** Whether nothing more leaves before the peer reads. */
  readonly peerIsFull: boolean;
}

/** Of an IPv4 connection on this machine. */
export interface BothEnds {
  readonly own: KernelQueues;
  readonly peer: KernelQueues;
}

/**
 * Resolves when `moved` has said the same for `turns` turns of the event loop, and the kernel then holds the same twice, so many
 * turns apart. The table of all sockets is long where many were closed lately: it is read only where all else stands still.
 */
export async function stillQueues(
  sockets: readonly Socket[],
  moved: () => unknown,
  turns: number,
): Promise<BothEnds[]> {
  for (let before = ''; ; ) {
    await standsStill(moved, turns);
    const queues = kernelQueues(...sockets);
    const now = JSON.stringify([moved(), queues]);
    if (now === before) return queues;
    before = now;
  }
}

async function standsStill(moved: () => unknown, turns: number): Promise<void> {
  let last = JSON.stringify(moved());
  for (let still = 0; still < turns; ) {
    await new Promise((resolve) => setImmediate(resolve));
    const now = JSON.stringify(moved());
    still = now === last ? still + 1 : 0;
    last = now;
  }
}

/** What the kernel holds for both ends of each connection of which a socket is one end. */
export function kernelQueues(...sockets: readonly Socket[]): BothEnds[] {
  const table = readFileSync('/proc/net/tcp', 'latin1');
  return sockets.map(({ localAddress, localPort, remoteAddress, remotePort }) => {
    const own = endpoint(localAddress, localPort);
    const peer = endpoint(remoteAddress, remotePort);
    return { own: queuesOf(table, `${own} ${peer}`), peer: queuesOf(table, `${peer} ${own}`) };
  });
}

function queuesOf(table: string, ends: string): KernelQueues {
  const at = table.indexOf(` ${ends} 01 `);
  if (at === -1) throw new Error(`no connection ${ends} stands`);
  const [, unsent = '', unread = '', timer = ''] =
    /^([0-9A-F]{8}):([0-9A-F]{8}) ([0-9A-F]{2}):/.exec(table.slice(at + ` ${ends} 01 `.length)) ?? [];
  return {
    unsent: Number.parseInt(unsent, 16),
    unread: Number.parseInt(unread, 16),
    peerIsFull: timer === PROBES_CLOSED_WINDOW,
  };
}

/** An address as the table has it: a number in the machine's own byte order, which is little-endian wherever we run. */
function endpoint(address: string | undefined, port: number | undefined): string {
  if (address === undefined || port === undefined) throw new Error('the socket is not connected');
  const octets = address.replace('::ffff:', '').split('.').map(Number);
  const hex = (value: number, digits: number) => value.toString(16).toUpperCase().padStart(digits, '0');
  return `${octets
    .reverse()
    .map((octet) => hex(octet, 2))
    .join('')}:${hex(port, 4)}`;
}
