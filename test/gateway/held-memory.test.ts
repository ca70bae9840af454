/** What a caller may hold in the gateway's memory: beyond it, its own connections end. */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ClientHttp2Session, createServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { HeldMemory, type Holder } from '../../src/gateway/held-memory.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { Flag, frame, PREFACE, settings, Type } from '../wire/http2/frames.ts';
import { askHttp2, callers, type RunningGateway, startGateway, WEB_ENTRY, web } from './running-gateway.ts';

const OTHER = 'spiffe://cluster.local/ns/shop/sa/other';
const other = callers.issue('other', OTHER);
const OTHER_ENTRY = { name: 'other', match: { spiffe: OTHER }, allowedRoutes: ['api'] };

const LIMIT_BYTES = 600;

/** Connections of these parties that hold so much, and who of them were ended. Those named by an address have no caller. */
async function look(
  held: readonly (readonly [party: string, bytes: number])[],
  residentBytes = LIMIT_BYTES,
  limitBytes = LIMIT_BYTES,
): Promise<readonly string[]> {
  const clock = new ManualClock();
  const ended: string[] = [];
  let counted = 0;
  const lines: unknown[] = [];
  const memory = new HeldMemory({
    limitBytes,
    residentBytes: () => residentBytes,
    kernel: { charged: () => 0, queued: () => new Map() },
    clock,
    log: { warn: (facts: unknown) => void lines.push(facts) },
    onEnded: () => counted++,
  });
  for (const [key, heldBytes] of held) {
    const holder: Holder = {
      party: { key, caller: key.startsWith('192.0.2.') ? undefined : key, address: '192.0.2.1' },
      heldBytes,
      sockets: [],
      end() {
        ended.push(`${key} ${heldBytes}`);
        gone();
      },
    };
    const gone = memory.add(holder);
  }
  await clock.advance(250);
  expect(counted).toBe(ended.length);
  expect(lines).toHaveLength(ended.length);
  memory.close();
  expect(clock.pendingTimers).toBe(0);
  return ended;
}

describe('the memory that all connections hold', () => {
  it('costs nobody anything up to a sixth of the limit', async () => {
    expect(
      await look([
        ['one', 60],
        ['one', 20],
        ['other', 20],
      ]),
    ).toEqual([]);
  });

  it('above that costs the caller that holds most its largest connections, until it is enough', async () => {
    const held = [
      ['one', 50],
      ['one', 10],
      ['other', 39],
      ['other', 20],
      ['third', 30],
    ] as const;
    expect(await look(held)).toEqual(['one 50']);
    expect(await look([...held, ['other', 5]])).toEqual(['other 39', 'one 50']);
  });

  it('is charged to all unidentified callers as one, however many addresses they have', async () => {
    const held = [
      ['one', 30],
      ['192.0.2.1', 25],
      ['192.0.2.2', 10],
      ['192.0.2.2', 16],
      ['192.0.2.3', 20],
      ['192.0.2.4', 20],
    ] as const;
    expect(await look(held)).toEqual(['192.0.2.2 16', '192.0.2.1 25']);
    expect(await look([['one', 90], ...held])).toEqual(['one 90', '192.0.2.2 16', '192.0.2.1 25']);
  });

  it('is not looked at while the process is small, or has no limit', async () => {
    expect(await look([['one', 1000]], LIMIT_BYTES / 3 - 1)).toEqual([]);
    expect(await look([['one', 1000]], LIMIT_BYTES, Number.POSITIVE_INFINITY)).toEqual([]);
  });
});

/** A look that finds the kernel charged with so much, of which so much waits for each of the connections. */
async function lookIntoKernel(
  charged: number,
  waits: Readonly<Record<string, number>> | undefined,
  residentBytes = LIMIT_BYTES,
  ms = 100,
): Promise<{
  readonly ended: readonly string[];
  readonly warnings: readonly string[];
  readonly looks: number;
}> {
  const clock = new ManualClock();
  /** Each look takes 30. */
  let lookedMs = 0;
  const ended: string[] = [];
  const warnings: string[] = [];
  let looks = 0;
  const sizes = new Map<unknown, number>();
  const memory = new HeldMemory({
    limitBytes: LIMIT_BYTES,
    residentBytes: () => residentBytes,
    kernel: {
      charged: () => charged,
      queued<Owner>(sockets: ReadonlyMap<Owner, readonly Socket[]>) {
        looks += 1;
        lookedMs += 30;
        if (waits === undefined) return undefined;
        return new Map(Array.from(sockets.keys(), (owner) => [owner, sizes.get(owner) ?? 0]));
      },
    },
    clock: {
      now: () => clock.now(),
      after: (delayMs, callback) => clock.after(delayMs, callback),
      monotonicMs: () => clock.monotonicMs() + lookedMs,
    },
    log: { warn: (_facts: unknown, message = '') => void warnings.push(message) },
    onEnded() {},
  });
  for (const [key, bytes] of Object.entries(waits ?? {})) {
    const holder: Holder = {
      party: { key, caller: key, address: '192.0.2.1' },
      heldBytes: 0,
      sockets: [],
      end() {
        ended.push(key);
        gone();
      },
    };
    sizes.set(holder, bytes);
    const gone = memory.add(holder);
  }
  await clock.advance(ms);
  memory.close();
  return { ended, warnings, looks };
}

describe('the memory that the kernel holds for connections', () => {
  const waits = { one: 60, other: 40, third: 10 };

  it.each([
    ['an eighth of the limit is left alone, however large the process', 75, 600, []],
    ['beside a small process, what is left of five eighths', 275, 100, []],
    ['more than an eighth ends who has most, until three quarters of it are left', 76, 600, ['one']],
    ['more than is left of five eighths does so too', 200, 200, ['one']],
  ])('%s', async (_, charged, residentBytes, ended) => {
    expect((await lookIntoKernel(charged, waits, residentBytes)).ended).toEqual(ended);
  });

  it('belongs to ended connections if more than twice the waiting bytes is charged', async () => {
    expect((await lookIntoKernel(600, { one: 20, other: 17 })).ended).toEqual([]);
    expect((await lookIntoKernel(600, { one: 20, other: 18 })).ended).toEqual(['one']);
  });

  it('cannot be charged to a caller without the kernel tables, which is logged at most once a second', async () => {
    const { ended, warnings } = await lookIntoKernel(600, undefined, 600, 2000);
    expect(ended).toEqual([]);
    const warning = 'the kernel holds too much memory for connections, and does not say for which';
    expect(warnings).toEqual([warning, warning]);
  });

  it('is looked at every other time even if each look at the process ends a connection', async () => {
    const clock = new ManualClock();
    let looks = 0;
    const memory = new HeldMemory({
      limitBytes: LIMIT_BYTES,
      residentBytes: () => LIMIT_BYTES,
      kernel: {
        charged() {
          looks += 1;
          return 0;
        },
        queued: () => new Map(),
      },
      clock,
      log: { warn() {} },
      onEnded() {},
    });
    const party = { key: 'one', caller: 'one', address: '192.0.2.1' };
    for (let count = 0; count < 200; count++) {
      let gone = (): void => {};
      gone = memory.add({ party, heldBytes: 10, sockets: [], end: () => gone() });
      await clock.advance(10);
    }
    memory.close();
    // Of 20 looks.
    expect(looks).toBeGreaterThan(9);
  });

  it('is looked at again only after five times as long as the look took', async () => {
    expect((await lookIntoKernel(600, { one: 1 }, 600, 1000)).looks).toBe(5);
  });
});

const CALLERS = [{ ...WEB_ENTRY, limits: { connections: 60 } }, OTHER_ENTRY];
const ENDED = 'gateway_connections_total{result="held_too_much"}';

/** A gateway in this much memory takes 64 connections. */
const MEMORY_BYTES = 8 * 2 ** 20;

const LARGE = Buffer.alloc(256 * 1024);
const LONG = Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`x-${n}`, 'a'.repeat(8000)]));

const HEAD = 'GET /api/ HTTP/1.1\r\nHost: gateway.test\r\n';

/** GET https://gateway.test/api/, of the static table and literals (RFC 7541 §6). */
const REQUEST = Buffer.from('\x82\x87\x04\x05/api/\x01\x0cgateway.test', 'latin1');

/** GET https://gateway.test/api/heads. */
const FOR_HEADS = Buffer.from('\x82\x87\x04\x0a/api/heads\x01\x0cgateway.test', 'latin1');

/** Of one connection. */
const STREAMS = 90;

function answer(request: IncomingMessage, response: ServerResponse): void {
  if (request.method === 'POST' || request.url === '/api/slow') return;
  if (request.url === '/api/heads')
    for (const [name, value] of Object.entries(LONG)) response.setHeader(name, value);
  response.end(request.url === '/api/large' ? LARGE : 'ok');
}

const unread = (gateway: RunningGateway): Promise<ClientHttp2Session> =>
  gateway.http2(web, { settings: { initialWindowSize: 0 } } as object);

async function onEach<C>(
  count: number,
  connect: () => Promise<C>,
  act: (connection: C) => void,
): Promise<void> {
  for (let made = 0; made < count; made++) act(await connect());
}

function ask(session: ClientHttp2Session, headers: Readonly<Record<string, string>>, body?: Buffer): void {
  for (let count = 0; count < STREAMS; count++) {
    const stream = session.request(headers, { endStream: body === undefined });
    stream.on('error', () => {});
    if (body !== undefined) stream.write(body);
  }
}

const ATTACKS: Readonly<Record<string, (gateway: RunningGateway) => Promise<void>>> = {
  'heads that do not end': (gateway) =>
    onEach(
      50,
      () => gateway.raw(web),
      (socket) => socket.write(`${HEAD}\r\n${HEAD}x: ${'a'.repeat(60_000)}`),
    ),
  'trailers that do not end': (gateway) =>
    onEach(
      50,
      () => gateway.raw(web),
      (socket) =>
        socket.write(
          `${HEAD.replace('GET', 'POST')}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: ${'a'.repeat(60_000)}`,
        ),
    ),
  'field blocks that do not end': (gateway) =>
    onEach(
      25,
      () => gateway.raw(web, { ALPNProtocols: ['h2'] }),
      (socket) => {
        const begun = frame(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 1, REQUEST);
        socket.write(Buffer.concat([PREFACE, settings(), begun, frame(Type.HEADERS, Flag.NONE, 3, REQUEST)]));
        for (let frames = 0; frames < 8; frames++) {
          socket.write(frame(Type.CONTINUATION, Flag.NONE, 3, Buffer.alloc(15_000)));
        }
      },
    ),
  'refusals that it does not read': (gateway) =>
    onEach(
      2,
      () => unread(gateway),
      (session) => ask(session, { ':path': '/refused/', ...LONG }),
    ),
  'answers that it does not read': (gateway) =>
    onEach(
      2,
      () => unread(gateway),
      (session) => ask(session, { ':path': '/api/large' }),
    ),
  'heads of answers that it does not read': (gateway) =>
    onEach(
      6,
      () => gateway.raw(web, { ALPNProtocols: ['h2'] }),
      (socket) => {
        socket.pause().write(Buffer.concat([PREFACE, settings()]));
        for (let id = 1; id < 2 * STREAMS; id += 2) {
          socket.write(frame(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, id, FOR_HEADS));
        }
      },
    ),
  'uploads that the upstream does not read': (gateway) =>
    onEach(
      // So many that their streams alone are too much: the system takes what a test can upload.
      4,
      () => gateway.http2(web),
      (session) => ask(session, { ':path': '/api/slow', ':method': 'POST' }, LARGE),
    ),
};

it.each(Object.entries(ATTACKS))('a caller with %s loses only its own connections', async (_, attack) => {
  const constrained = vi.spyOn(process, 'constrainedMemory').mockReturnValue(MEMORY_BYTES);
  onTestFinished(() => constrained.mockRestore());
  const gateway = await startGateway({ callers: CALLERS, answer });
  const session = await gateway.http2(other);
  const kept = session.request({ ':path': '/api/slow', ':method': 'POST' }, { endStream: false });
  kept.write(Buffer.alloc(64 * 1024));
  await until(() => gateway.upstream.requests.length > 0);
  await attack(gateway);
  await until(async () => (await gateway.metric(ENDED)) !== 0);
  expect(kept.closed).toBe(false);
  expect((await askHttp2(session)).status).toBe(200);
  const lines = gateway.logLines.filter((line) => line.includes('it holds too much memory'));
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.filter((line) => line.includes(OTHER))).toEqual([]);
});

it('many unidentified callers, each from its own address, end no connection of an identified one', async () => {
  const constrained = vi.spyOn(process, 'constrainedMemory').mockReturnValue(MEMORY_BYTES);
  onTestFinished(() => constrained.mockRestore());
  const gateway = await startGateway({ callers: CALLERS, answer });
  const session = await gateway.http2(other);
  const kept = Array.from({ length: 6 }, () =>
    session.request({ ':path': '/api/slow', ':method': 'POST' }, { endStream: false }),
  );
  for (const stream of kept) stream.on('error', () => {}).write(Buffer.alloc(60 * 1024));
  await until(() => gateway.upstream.requests.length === kept.length);
  for (let count = 0; count < 15; count++) {
    const tls = { localAddress: `127.0.0.${count + 2}`, settings: { initialWindowSize: 0 } } as object;
    const nobody = await gateway.http2(undefined, tls);
    // Less than the caller has.
    for (let asked = 0; asked < 4; asked++) {
      nobody.request({ ':path': '/api/', ...LONG }).on('error', () => {});
    }
  }
  await until(async () => (await gateway.metric(ENDED)) !== 0);
  expect((await askHttp2(session)).status).toBe(200);
  expect(kept.filter(({ closed }) => closed)).toEqual([]);
  expect(gateway.logLines.filter((line) => line.includes('too much memory') && line.includes(OTHER))).toEqual(
    [],
  );
});

it('unread bytes in connections with uploads count, too', async () => {
  const constrained = vi.spyOn(process, 'constrainedMemory').mockReturnValue(MEMORY_BYTES);
  onTestFinished(() => constrained.mockRestore());
  // Reads no more of a body than a window.
  const server = createServer((request, response) => {
    if (request.method === 'GET') response.end('ok');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const routes = [{ name: 'api', match: { pathPrefix: '/api/' }, upstream, protocol: 'h2c' }];
  const gateway = await startGateway({ callers: CALLERS, file: { routes } });
  await onEach(
    20,
    () => gateway.raw(web),
    (socket) => {
      // Too long to be kept for another try.
      socket.write('POST /api/ HTTP/1.1\r\nHost: gateway.test\r\nContent-Length: 1000000\r\n\r\n');
      socket.write(LARGE);
    },
  );
  await until(async () => (await gateway.metric(ENDED)) !== 0);
  expect((await gateway.get(other)).status).toBe(200);
});

const HUGE = Buffer.alloc(2 ** 20);

it.each<[string, (gateway: RunningGateway) => Promise<unknown>]>([
  [
    'answers that callers do not read',
    async (gateway) => {
      for (let count = 0; count < 8; count++) {
        const socket = await gateway.raw(web);
        socket.pause().write(`${HEAD}\r\n`);
      }
    },
  ],
  [
    'answers that wait at their upstreams',
    async (gateway) => {
      const session = await unread(gateway);
      for (let count = 0; count < 8; count++) session.request({ ':path': '/api/' }).on('error', () => {});
    },
  ],
])('%s count for what the kernel holds of them', async (_, attack) => {
  const constrained = vi.spyOn(process, 'constrainedMemory').mockReturnValue(MEMORY_BYTES);
  onTestFinished(() => constrained.mockRestore());
  let chargedBytes = 0;
  const gateway = await startGateway({
    callers: CALLERS,
    answer: (request, response) => void response.end(request.url === '/api/small' ? 'ok' : HUGE),
    socketBytes: () => chargedBytes,
  });
  const session = await gateway.http2(other);
  await attack(gateway);
  await until(() => gateway.upstream.requests.length === 8);
  expect(await gateway.metric(ENDED)).toBe(0);
  // An eighth of the limit, half of this, may stay.
  chargedBytes = MEMORY_BYTES / 4;
  await until(async () => (await gateway.metric(ENDED)) !== 0);
  expect((await askHttp2(session, { ':path': '/api/small' })).status).toBe(200);
  const lines = gateway.logLines.filter((line) => line.includes('it has the kernel hold too much memory'));
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.filter((line) => line.includes(OTHER))).toEqual([]);
});

it('an ended connection leaves no bytes in the kernel', async () => {
  const constrained = vi.spyOn(process, 'constrainedMemory').mockReturnValue(MEMORY_BYTES);
  onTestFinished(() => constrained.mockRestore());
  const gateway = await startGateway({
    callers: CALLERS,
    answer: (_, response) => void response.end(HUGE),
    socketBytes: () => MEMORY_BYTES,
  });
  const socket = await gateway.raw(web);
  socket.pause().write(`${HEAD}\r\n`);
  await until(async () => (await gateway.metric(ENDED)) === 1);
  const [error] = (await once(socket.resume(), 'error')) as [NodeJS.ErrnoException];
  expect(error.code).toBe('ECONNRESET');
});

it('kernel memory of ended connections ends no other connection', async () => {
  const constrained = vi.spyOn(process, 'constrainedMemory').mockReturnValue(MEMORY_BYTES);
  onTestFinished(() => constrained.mockRestore());
  let looks = 0;
  const gateway = await startGateway({
    callers: CALLERS,
    answer: (_, response) => void response.end(LARGE),
    socketBytes: () => {
      looks += 1;
      return MEMORY_BYTES;
    },
  });
  const socket = await gateway.raw(other);
  socket.pause().write(`${HEAD}\r\n`);
  await until(() => gateway.upstream.requests.length === 1);
  const before = looks;
  await until(() => looks > before + 2);
  expect(await gateway.metric(ENDED)).toBe(0);
});
