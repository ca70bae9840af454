import { once } from 'node:events';
import { type AddressInfo, connect, createServer, Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { boundCallerConnections } from '../../src/callers/caller-connections.ts';
import { captureLog } from '../support/log-capture.ts';

const MOST = 256;

/** A listener whose connections are bounded, and connections to it from addresses of loopback. */
async function start() {
  const dropped: string[] = [];
  const { log, lines } = captureLog();
  const bound = boundCallerConnections({ most: MOST, onDropped: (reason) => dropped.push(reason), log });
  /** By address and port of the caller: two addresses may use one port. */
  const accepted = new Map<string, Socket>();
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    accepted.set(`${socket.remoteAddress} ${socket.remotePort}`, socket);
    open.add(socket);
    socket.on('error', () => undefined);
    bound.admit(socket);
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  async function call(localAddress: string) {
    const socket = connect({ host: '127.0.0.1', port, localAddress });
    open.add(socket);
    socket.on('error', () => undefined);
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const arrived = once(server, 'connection');
    await once(socket, 'connect');
    await arrived;
    socket.resume();
    return { closed, local: () => accepted.get(`${localAddress} ${socket.localPort}`) as Socket, socket };
  }
  return {
    bound,
    call,
    async callers(count: number, address: string) {
      const callers = [];
      for (let caller = 0; caller < count; caller++) callers.push(await call(address));
      return callers;
    },
    displaced: () => dropped.filter((reason) => reason === 'displaced').length,
    dropped,
    lines,
    /** Accepted connections that stand. */
    standing: () => [...accepted.values()].filter(({ destroyed }) => !destroyed).length,
  };
}

type Caller = Awaited<ReturnType<Awaited<ReturnType<typeof start>>['call']>>;
const at = (callers: readonly Caller[], index: number) => callers[index] as Caller;

it('connections up to the bound stay; one more replaces the one that was idle longest', async () => {
  const { bound, callers, call, displaced, standing } = await start();
  const first = await callers(MOST, '127.0.0.1');
  expect(displaced()).toBe(0);
  expect(standing()).toBe(MOST);
  // The oldest has just been answered, the next is being answered.
  bound.begin(at(first, 0).local());
  bound.end(at(first, 0).local());
  bound.begin(at(first, 1).local());
  await call('127.0.0.1');
  await at(first, 2).closed;
  await call('127.0.0.1');
  await at(first, 3).closed;
  expect(displaced()).toBe(2);
  expect(standing()).toBe(MOST);
});

it('the address with most connections makes room, whoever comes', async () => {
  const { callers, call, displaced, lines, standing } = await start();
  const few = await callers(3, '127.0.0.2');
  const flood = await callers(MOST - 3, '127.0.0.1');
  for (let index = 0; index < 5; index++) {
    await call('127.0.0.3');
    await at(flood, index).closed;
  }
  expect(displaced()).toBe(5);
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] as string)).toMatchObject({ level: 'warn', address: '127.0.0.1' });
  expect(standing()).toBe(MOST);
  for (const { local } of few) expect(local().destroyed).toBe(false);
});

it('among addresses with one connection each, the new one is closed, unless an older one was answered already', async () => {
  const { bound, call, displaced, standing } = await start();
  const many: Caller[] = [];
  for (let n = 0; n < MOST; n++) many.push(await call(`127.0.1.${n}`));
  await (await call('127.0.0.1')).closed;
  for (const { local } of many) expect(local().destroyed).toBe(false);
  bound.begin(at(many, 7).local());
  bound.end(at(many, 7).local());
  await call('127.0.0.1');
  await at(many, 7).closed;
  expect(displaced()).toBe(2);
  expect(standing()).toBe(MOST);
});

it('an address with few connections keeps those that were answered, though two others flood together', async () => {
  const { bound, call, callers } = await start();
  const kept = await call('127.0.0.9');
  bound.begin(kept.local());
  bound.end(kept.local());
  await callers(MOST / 2, '127.0.0.1');
  await callers(MOST / 2 - 1, '127.0.0.2');
  await (await call('127.0.0.2')).closed;
  expect(kept.local().destroyed).toBe(false);
});

it('if all are busy, the connection with the oldest request is closed', async () => {
  const { bound, callers, call } = await start();
  const busy = await callers(MOST, '127.0.0.1');
  for (const { local } of busy.toReversed()) bound.begin(local());
  await call('127.0.0.1');
  await at(busy, MOST - 1).closed;
});

it('a closed connection no longer counts', async () => {
  const { callers, call, displaced } = await start();
  const [first, ...others] = await callers(MOST, '127.0.0.1');
  const gone = once((first as Caller).local(), 'close');
  (first as Caller).socket.destroy();
  await gone;
  await call('127.0.0.1');
  expect(displaced()).toBe(0);
  expect(at(others, 0).local().destroyed).toBe(false);
});

it('a connection is busy with one request at a time', async () => {
  const { bound, call, dropped } = await start();
  const [first, second] = [await call('127.0.0.1'), await call('127.0.0.1')];
  for (const { local } of [first, second]) expect(bound.begin(local())).toBe(true);
  bound.end(second.local());
  expect(bound.begin(second.local())).toBe(true);
  expect(dropped).toEqual([]);
  // What was read at once with it counts no more.
  for (let further = 0; further < 3; further++) expect(bound.begin(first.local())).toBe(false);
  await first.closed;
  expect(dropped).toEqual(['sent_ahead']);
});

it('a connection has no third request while two answers have not left', async () => {
  const { bound, call, dropped, lines } = await start();
  const caller = await call('127.0.0.2');
  const socket = caller.local();
  for (let answered = 0; answered < 2; answered++) {
    expect(bound.begin(socket)).toBe(true);
    bound.end(socket);
  }
  bound.left(socket);
  expect(bound.begin(socket)).toBe(true);
  bound.end(socket);
  expect(bound.begin(socket)).toBe(false);
  await caller.closed;
  expect(dropped).toEqual(['sent_ahead']);
  expect(JSON.parse(lines[0] as string)).toMatchObject({ level: 'warn', address: '127.0.0.2' });
});

it('a connection that closed before it was counted is released', async () => {
  const { bound } = await start();
  const socket = new Socket();
  expect(socket.remoteAddress).toBeUndefined();
  bound.admit(socket);
  expect(socket.destroyed).toBe(true);
});
