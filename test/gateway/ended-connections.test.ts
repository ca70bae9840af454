/** What becomes of answers that the kernel still has to send when their connection ends. */

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { EndedConnections } from '../../src/gateway/ended-connections.ts';
import { readSocketTables } from '../../src/platform/net/socket-tables.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ShiftedClock } from '../support/shifted-clock.ts';
import { until } from '../support/until.ts';
import { volume } from '../support/volume.ts';
import { Flag, frame, PREFACE, Setting, settings, Type, windowUpdate } from '../wire/http2/frames.ts';
import { type RunningGateway, startGateway, WEB, WEB_ENTRY, web } from './running-gateway.ts';

/** More than the peer's side of a connection takes unread, and less than what the kernel keeps on this one. */
const LARGE = Buffer.alloc(1_500_000, 'a');
/** Of what the peer has not taken. */
const MANY_BYTES = 300_000;

/** Read at a time. */
const STEP_BYTES = 200_000;

/** A gateway in this much memory takes 64 connections. */
const MEMORY_BYTES = 8 * 2 ** 20;
const CALLERS = [{ ...WEB_ENTRY, limits: { connections: 60 } }];
const HELD_TOO_MUCH = 'gateway_connections_total{result="held_too_much"}';

const HEAD = 'GET /api/ HTTP/1.1\r\nHost: gateway.test\r\n';

/** GET https://gateway.test/api/, of the static table and literals (RFC 7541 §6). */
const REQUEST = Buffer.from('\x82\x87\x04\x05/api/\x01\x0cgateway.test', 'latin1');
const WINDOW = 2 ** 30;

/** What the kernel has of the gateway's side of a connection (proc_pid_net(5)). */
interface Row {
  /** Of the peer. */
  readonly port: string;
  /** Its end was said by the gateway; */
  readonly hasEnded: boolean;
  /** the peer has heard of it. */
  readonly isOver: boolean;
  readonly unsent: number;
  /** No process has it. */
  readonly isOrphan: boolean;
}

/** The states before its end was said, by either or only by the peer: established, close-wait, listening. */
const OPEN: ReadonlySet<string> = new Set(['01', '08', '0A']);

/** Fin-wait-2, time-wait. */
const OVER: ReadonlySet<string> = new Set(['05', '06']);

const portOf = (port: number): string => `:${port.toString(16).toUpperCase().padStart(4, '0')}`;

function rowsOf(gateway: RunningGateway): readonly Row[] {
  const own = portOf(gateway.port);
  return readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .filter((line) => line.includes(own))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local]) => local?.endsWith(own))
    .map(([, , peer = '', state = '', queues = '', , , , , inode]) => {
      const unsent = Number.parseInt(queues, 16);
      return {
        port: peer.slice(peer.indexOf(':')),
        hasEnded: !OPEN.has(state),
        isOver: OVER.has(state),
        unsent,
        isOrphan: inode === '0' && unsent > 0,
      };
    });
}

/** Waits until the kernel's table says so. It has a line for each connection that was closed lately: reading takes a tenth of the time. */
async function untilTable(condition: () => boolean): Promise<void> {
  for (;;) {
    const beganAtMs = performance.now();
    if (condition()) return;
    await pause(Math.max(10, 9 * (performance.now() - beganAtMs)));
  }
}

/** Of each of these peers the end was said, and not heard; or the connection is gone, having been cut off. */
async function haveEnded(gateway: RunningGateway, ports: readonly string[]): Promise<void> {
  const open = () => rowsOf(gateway).filter((row) => !row.hasEnded && ports.includes(row.port));
  await untilTable(() => open().length === 0);
}

const unsentBy = (gateway: RunningGateway): number =>
  rowsOf(gateway).reduce((bytes, { unsent }) => bytes + unsent, 0);

const orphansOf = (gateway: RunningGateway): readonly Row[] =>
  rowsOf(gateway).filter(({ isOrphan }) => isOrphan);

interface Left {
  readonly socket: TLSSocket;
  readonly wire: Socket;
  /** As in its row. */
  readonly port: string;
}

/** Has the kernel hold an answer of a connection of its own. */
async function leaveUnread(
  gateway: RunningGateway,
  octets: Buffer | string,
  ALPNProtocols: string[] = ['http/1.1'],
): Promise<Left> {
  const wire = connect({ port: gateway.port, host: '127.0.0.1' });
  wire.on('error', () => {});
  const socket = await gateway.raw(web, { socket: wire, ALPNProtocols });
  const port = portOf(wire.localPort as number);
  socket.pause().write(octets);
  await untilTable(() => rowsOf(gateway).some((row) => row.port === port && row.unsent > MANY_BYTES));
  return { socket, wire, port };
}

const CLOSING = `${HEAD}Connection: close\r\n\r\n`;
const KEPT = `${HEAD}\r\n`;

/** How a connection is made to end. */
type Way = (gateway: RunningGateway) => Promise<Left>;

const WAYS: Readonly<Record<string, Way>> = {
  'a last answer over HTTP/1.1': (gateway) => leaveUnread(gateway, CLOSING),
  'a frame of HTTP/2 that is none': async (gateway) => {
    const begun = [
      PREFACE,
      settings([Setting.INITIAL_WINDOW_SIZE, WINDOW]),
      windowUpdate(0, WINDOW),
      frame(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 1, REQUEST),
    ];
    const left = await leaveUnread(gateway, Buffer.concat(begun), ['h2']);
    left.socket.write(frame(Type.DATA, Flag.NONE, 0, 'a'));
    return left;
  },
  'a request that is none': async (gateway) => {
    const left = await leaveUnread(gateway, KEPT);
    left.socket.write('none\r\n\r\n');
    return left;
  },
  'its own end': async (gateway) => {
    const left = await leaveUnread(gateway, KEPT);
    left.socket.end();
    return left;
  },
  'a record of TLS that is none': async (gateway) => {
    const left = await leaveUnread(gateway, KEPT);
    left.wire.write('none of TLS');
    return left;
  },
  'an answer that its upstream breaks off': (gateway) =>
    leaveUnread(gateway, KEPT.replace('/api/', '/api/broken')),
  'a tunnel that its upstream ends': (gateway) =>
    leaveUnread(gateway, `${HEAD}Connection: upgrade\r\nUpgrade: echo\r\n\r\n`),
};

function answer(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.upgrade !== undefined) {
    request.socket.write('HTTP/1.1 101 \r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n');
    request.socket.end(LARGE);
  } else if (request.url === '/api/broken') {
    response.setHeader('content-length', 2 * LARGE.length);
    response.write(LARGE, () => response.destroy());
  } else response.end(LARGE);
}

async function leaveMany(gateway: RunningGateway, connections: number): Promise<readonly string[]> {
  const ports: string[] = [];
  while (ports.length < connections) ports.push((await leaveUnread(gateway, CLOSING)).port);
  await haveEnded(gateway, ports);
  return ports;
}

describe('a caller with unread answers whose connections have ended', () => {
  it.each(Object.entries(WAYS))(
    'by %s, leaves nothing to the kernel',
    async (_, end) => {
      const clock = new ShiftedClock();
      const gateway = await startGateway({ clock, answer });
      const connections = volume(4, 60);
      const ports: string[] = [];
      while (ports.length < connections) ports.push((await end(gateway)).port);
      await haveEnded(gateway, ports);
      while (unsentBy(gateway) > 0) {
        clock.advance(10_000);
        await pause(100);
        expect(orphansOf(gateway)).toEqual([]);
      }
    },
    60_000,
  );

  it('is charged for what the kernel holds for them', async () => {
    const constrained = vi.spyOn(process, 'constrainedMemory').mockReturnValue(MEMORY_BYTES);
    onTestFinished(() => constrained.mockRestore());
    let socketBytes = 0;
    const gateway = await startGateway({ answer, callers: CALLERS, socketBytes: () => socketBytes });
    await leaveMany(gateway, 8);
    expect(await gateway.metric(HELD_TOO_MUCH)).toBe(0);
    socketBytes = MEMORY_BYTES;
    await untilTable(() => unsentBy(gateway) < MEMORY_BYTES / 8);
    expect(await gateway.metric(HELD_TOO_MUCH)).toBeGreaterThan(5);
    expect(
      gateway.logLines.filter((line) => line.includes('it has the kernel hold too much')).join(''),
    ).toContain(WEB);
  });

  it('has at most a quarter of all connections in that state', async () => {
    const constrained = vi.spyOn(process, 'constrainedMemory').mockReturnValue(MEMORY_BYTES);
    onTestFinished(() => constrained.mockRestore());
    const gateway = await startGateway({ answer, callers: CALLERS });
    await leaveMany(gateway, 16);
    const [newest] = await leaveMany(gateway, 1);
    const ended = () => rowsOf(gateway).filter((row) => row.hasEnded);
    await untilTable(() => ended().length === 16);
    expect(ended().map(({ port }) => port)).toContain(newest);
    expect(orphansOf(gateway)).toEqual([]);
  });
});

it.each([
  ['a last answer', CLOSING],
  ['an answer, and then its own end', KEPT],
])('a caller that reads %s slowly gets all of it', async (_, request) => {
  const clock = new ShiftedClock();
  const gateway = await startGateway({ clock, answer });
  const { socket, port } = await leaveUnread(gateway, request);
  if (request === KEPT) socket.end();
  await haveEnded(gateway, [port]);
  let bytes = 0;
  let steps = 0;
  let ended = false;
  socket.on('end', () => (ended = true));
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > steps * STEP_BYTES) socket.pause();
  });
  for (; !ended; steps++) {
    clock.advance(20_000);
    // As long as it takes to look.
    await pause(50);
    socket.resume();
    await until(() => ended || socket.isPaused());
  }
  expect(bytes).toBeGreaterThan(LARGE.length);
  expect(steps).toBeGreaterThan(4);
  await untilTable(() => rowsOf(gateway).every((row) => !row.hasEnded || row.isOver));
});

describe('on sockets of its own', () => {
  const party = { key: 'web', caller: 'web', address: '127.0.0.1' };

  /** Follows what connects. None is followed to its end by a clock of its own. */
  async function following(most: number, leavesRest = false) {
    const clock = new ManualClock();
    let looks = 0;
    const ended = new EndedConnections({
      most: () => most,
      leavesRest: () => leavesRest,
      held: { add: () => () => {} },
      clock,
      log: { debug() {} },
      async readTables(onPage) {
        const read = await readSocketTables(onPage);
        looks += 1;
        return read;
      },
    });
    const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      ended.close();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    return {
      ended,
      clock,
      looks: () => looks,
      async looked() {
        const before = looks;
        await clock.advance(500);
        await until(() => looks > before);
      },
      /** @param octets that the kernel takes. @param hasEnded as its owner says. */
      async connection(octets: Buffer, hasEnded = false) {
        const accepting = once(server, 'connection');
        const peer = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).pause();
        onTestFinished(() => void peer.destroy());
        const [socket] = (await accepting) as [Socket];
        ended.follow(
          socket,
          () => party,
          () => hasEnded,
        );
        await new Promise((resolve) => socket.write(octets, resolve));
        return { socket, peer };
      },
    };
  }

  /** Resolves to the code of the error that ends it, or to how much came before its end. */
  const fateOf = (peer: Socket): Promise<string | number> =>
    new Promise((resolve) => {
      let bytes = 0;
      peer.on('data', (chunk) => (bytes += chunk.length));
      peer.once('end', () => resolve(bytes));
      peer.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      peer.resume();
    });

  it('of two that end in one turn, the first is reset to make room for the second', async () => {
    const { ended, connection } = await following(1);
    const older = await connection(LARGE);
    const newer = await connection(LARGE);
    older.socket.destroy();
    newer.socket.destroy();
    await until(() => ended.size === 1);
    expect(await fateOf(older.peer)).toBe('ECONNRESET');
    expect(await fateOf(newer.peer)).toBe(LARGE.length);
  });

  /** The kernel may wait so long until it says what its peer has taken. */
  const acknowledged = (): Promise<void> => pause(250);

  /** Ends three of two that may wait: the first judged so long ago, the second all sent, the third the newest. */
  async function endThree(judgedMs: number) {
    const { ended, connection, looked, clock } = await following(2);
    const slow = await connection(LARGE);
    slow.socket.destroy();
    await until(() => ended.size === 1);
    await acknowledged();
    await looked();
    await clock.advance(judgedMs);
    const done = await connection(Buffer.from('a'));
    done.socket.destroy();
    const newest = await connection(LARGE);
    newest.socket.destroy();
    await until(() => ended.size === 2);
    return [await fateOf(slow.peer), await fateOf(newest.peer)];
  }

  it('one that has sent everything makes room before one that is read slowly', async () => {
    expect(await endThree(30_000)).toEqual([LARGE.length, LARGE.length]);
  });

  it('one that stalls makes room first', async () => {
    expect(await endThree(50_000)).toEqual(['ECONNRESET', LARGE.length]);
  });

  it('above half of the bound, they are looked at soon', async () => {
    const { ended, connection, clock, looks } = await following(4);
    for (let count = 1; count <= 3; count++) {
      const { socket } = await connection(LARGE);
      socket.destroy();
      await until(() => ended.size === count);
    }
    await clock.advance(50);
    await until(() => looks() === 1);
  });

  it('one that was destroyed is not read any further', async () => {
    const { connection } = await following(2);
    const { socket } = await connection(LARGE);
    const { _handle: handle } = socket as unknown as { _handle: { readStart(): void; readStop(): void } };
    const stopped = vi.spyOn(handle, 'readStop');
    const started = vi.spyOn(handle, 'readStart');
    socket.destroy();
    expect([stopped.mock.calls.length, started.mock.calls.length]).toEqual([1, 0]);
    await once(socket, 'close');
    await until(() => started.mock.calls.length === 1);
  });

  it('one whose peer takes nothing is reset after a minute, and no sooner', async () => {
    const { ended, connection, looked, clock } = await following(2);
    const { socket } = await connection(LARGE);
    socket.destroy();
    await until(() => ended.size === 1);
    await acknowledged();
    for (let looks = 0; looks < 118; looks++) await looked();
    expect(ended.size).toBe(1);
    await clock.advance(2000);
    await until(() => ended.size === 0);
  });

  it('further ended connections do not postpone a look', async () => {
    const { connection, clock, looks } = await following(10);
    for (let count = 0; count < 4; count++) {
      const { socket } = await connection(LARGE);
      socket.destroy();
      await once(socket, 'close');
      await clock.advance(400);
    }
    await until(() => looks() > 0);
  });

  it('one that is cut off as the program exits is left to the kernel with its unsent bytes', async () => {
    const { ended, connection } = await following(2, true);
    const { socket, peer } = await connection(LARGE);
    socket.write(Buffer.alloc(16_000_000));
    socket.on('error', () => {}).destroy();
    await once(socket, 'close');
    expect(ended.size).toBe(0);
    expect(await fateOf(peer)).toBeGreaterThanOrEqual(LARGE.length);
  });

  it('one whose peer reads slowly and sends window updates is sent to its end', async () => {
    const { ended, connection } = await following(2);
    const { socket, peer } = await connection(LARGE);
    socket.destroy();
    await until(() => ended.size === 1);
    for (let count = 0; count < 400; count++) {
      await new Promise((resolve) => peer.write(windowUpdate(0, 4096), resolve));
      await pause(1);
    }
    expect(await fateOf(peer)).toBe(LARGE.length);
  });

  it('one that half-closed while the kernel buffer was full is closed', async () => {
    const { connection } = await following(2);
    const { socket } = await connection(Buffer.from('a'), true);
    // The kernel does not take that much; as TLS does it, whose end Node does not show on this socket.
    socket.write(Buffer.alloc(16_000_000));
    socket._final(() => {});
    const closed = once(socket, 'close');
    socket.on('error', () => {}).destroy();
    await closed;
  });

  it('one whose peer goes on sending is reset', async () => {
    const { ended, connection } = await following(2);
    const { socket, peer } = await connection(LARGE);
    socket.destroy();
    await until(() => ended.size === 1);
    const fate = once(peer, 'error');
    let sent = 0;
    const send = (): void => {
      if (peer.destroyed) return;
      sent += 65_536;
      peer.write(Buffer.alloc(65_536), () => setImmediate(send));
    };
    send();
    const [error] = (await fate) as [NodeJS.ErrnoException];
    expect(['ECONNRESET', 'EPIPE']).toContain(error.code);
    expect(ended.size).toBe(0);
    // 1 MiB, and what the kernel takes meanwhile.
    expect(sent).toBeLessThan(16 * 2 ** 20);
  });
});

describe('an ended connection', () => {
  const party = { key: 'web', caller: 'web', address: '127.0.0.1' };

  /** One with something to send, which the kernel's tables say nothing of, and this of themselves. */
  async function missed(read: 'whole' | 'broken' | 'absent') {
    const clock = new ManualClock();
    const held = new Set<unknown>();
    const ended = new EndedConnections({
      most: () => 10,
      leavesRest: () => false,
      held: {
        add(holder) {
          held.add(holder);
          return () => void held.delete(holder);
        },
      },
      clock,
      log: { debug() {} },
      readTables: async () => read,
    });
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const accepting = once(server, 'connection');
    const { port } = server.address() as AddressInfo;
    const peer = connect({ port, host: '127.0.0.1' }).on('error', () => {});
    const [socket] = (await accepting) as [Socket];
    ended.follow(
      socket,
      () => party,
      () => false,
    );
    onTestFinished(() => {
      ended.close();
      peer.destroy();
      server.close();
    });
    await new Promise((resolve) => socket.write(LARGE, resolve));
    socket.destroy();
    await once(socket, 'close');
    expect([ended.size, held.size]).toEqual([1, 1]);
    await clock.advance(500);
    const afterOne = ended.size;
    await clock.advance(60_000);
    expect(held.size).toBe(ended.size);
    if (ended.size === 0) expect(clock.pendingTimers).toBe(0);
    return [afterOne, ended.size];
  }

  it('that is missing from the kernel table twice is done', async () => {
    expect(await missed('whole')).toEqual([1, 0]);
  });

  it('is kept while the kernel table cannot be read', async () => {
    expect(await missed('broken')).toEqual([1, 1]);
  });

  it('is left to the kernel if there is no kernel table', async () => {
    expect(await missed('absent')).toEqual([0, 0]);
  });

  it('without the handle that is expected of Node ends as usual', () => {
    const ended = new EndedConnections({
      most: () => 10,
      leavesRest: () => false,
      held: { add: () => () => {} },
      clock: new ManualClock(),
      log: { debug() {} },
    });
    const [near] = duplexPair();
    ended.follow(
      near as Socket,
      () => party,
      () => false,
    );
    near.destroy();
    expect(ended.size).toBe(0);
  });
});
