/** What a real server (test/e2e/token-cache) cannot be made to do, and what needs none. */

import { once } from 'node:events';
import { Registry } from '@prometheus-io/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createCacheMetrics } from '../../../src/broker/cache/metrics.ts';
import { openRedisStore, type StoreAccess } from '../../../src/broker/cache/redis-store.ts';
import { MAX_VALUE_LENGTH } from '../../../src/broker/cache/sealed-token.ts';
import { createLogger } from '../../../src/platform/log/logger.ts';
import { type Clock, systemClock } from '../../../src/platform/time/clock.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { freePort } from '../../support/free-port.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { bulk, emptyStore, RespServer } from './resp-server.ts';

interface Opening {
  readonly access?: StoreAccess;
  readonly timeoutMs?: number;
  readonly tls?: boolean;
  /** The system's unless given. */
  readonly clock?: Clock;
}

async function open(
  port: number,
  { access = {}, timeoutMs = 1000, tls = false, clock = systemClock }: Opening = {},
) {
  const registry = new Registry();
  const lines: Readonly<Record<string, unknown>>[] = [];
  const waiting = new Set<() => void>();
  const log = createLogger('trace', {
    write(line) {
      lines.push(JSON.parse(line) as Readonly<Record<string, unknown>>);
      for (const wake of waiting) wake();
    },
  });
  const store = openRedisStore({
    address: { host: '127.0.0.1', port, tls },
    access: () => access,
    timeoutMs,
    clock,
    random: () => 0,
    metrics: createCacheMetrics(registry),
    log,
  });
  onTestFinished(() => store.close());
  await store.tried;
  return {
    store,
    lines,
    async logged(matches: (line: Readonly<Record<string, unknown>>) => boolean) {
      for (;;) {
        const found = lines.find(matches);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => waiting.add(resolve));
      }
    },
    async metric(name: string): Promise<number> {
      const text = await registry.metrics();
      return Number(new RegExp(`^token_sidecar_broker_cache_${name} (\\S+)$`, 'm').exec(text)?.[1]);
    },
    connections: () => lines.filter(({ msg }) => msg === 'the token cache is connected').length,
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

const AWAY = { state: 'away' };

it('sends only four kinds of commands, and logs in with the mounted user and password', async () => {
  const server = await RespServer.start();
  const { store } = await open(server.port, { access: { username: 'broker', password: 'pass' } });
  await store.read(['a', 'b']);
  await store.claim('a:claim', 3000);
  await store.write('a', 'value', 1000);
  await store.remove('a:claim');
  const last = String(MAX_VALUE_LENGTH);
  expect(server.received).toEqual([
    ['AUTH', 'broker', 'pass'],
    ['PTTL', 'token-sidecar:broker:probe'],
    ['PTTL', 'a'],
    ['GETRANGE', 'a', '0', last],
    ['PTTL', 'b'],
    ['GETRANGE', 'b', '0', last],
    ['SET', 'a:claim', '1', 'NX', 'PX', '3000'],
    ['SET', 'a', 'value', 'PX', '1000'],
    ['DEL', 'a:claim'],
  ]);
});

describe('without a server', () => {
  it('the store is unavailable at once, is logged once, and is back soon after a server starts', async () => {
    const port = await freePort();
    const { store, lines, metric } = await open(port);
    expect(store.isConnected()).toBe(false);
    for (let n = 0; n < 100; n++) expect(await Promise.race([store.read(['a']), turn()])).toEqual(AWAY);
    expect(await metric('connected')).toBe(0);
    while ((await metric('failures_total\\{reason="unreachable"\\}')) < 3) await turn();
    expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { cache: `127.0.0.1:${port}`, reason: 'unreachable', detail: 'ECONNREFUSED' },
    ]);
  });
});

describe('a server that stalls', () => {
  it('after the connection: one answer is waited for until its timeout, and nothing after it', async () => {
    const server = await RespServer.start();
    const { store, logged } = await open(server.port, { timeoutMs: 50 });
    server.answer = () => undefined;
    expect(await Promise.all([store.read(['a']), store.claim('b', 1000)])).toEqual([AWAY, AWAY]);
    expect(await Promise.race([store.write('a', 'value', 1000), turn()])).toEqual(AWAY);
    expect(await logged(({ reason }) => reason === 'timeout')).toMatchObject({
      detail: 'no answer within 50 ms',
    });
  });

  it('does not count as stalled if its answer came while the process was busy', async () => {
    const server = await RespServer.start();
    const clock = new ShiftedClock();
    const timeoutMs = 60_000;
    const { store, lines } = await open(server.port, { timeoutMs, clock });
    server.answer = (command, socket) => {
      // The answer lies there from the end of this turn on. When the loop comes round, it looks at its timers first.
      setImmediate(() => clock.advance(timeoutMs));
      return emptyStore(command, socket);
    };
    expect(await store.remove('a')).toEqual({ state: 'answered', value: 'removed' });
    expect(lines.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('before its first byte: nobody waits for it', async () => {
    const server = await RespServer.start(() => undefined);
    const { store, lines } = await open(server.port);
    expect(store.isConnected()).toBe(false);
    expect(await store.read(['a'])).toEqual(AWAY);
    expect(lines).toMatchObject([{ reason: 'timeout', detail: 'no connection within 1000 ms' }]);
  });

  it('in its handshake: nobody waits for it, and it does not hold up the exit', async () => {
    const server = await RespServer.start(() => undefined);
    const { store, lines } = await open(server.port, { tls: true });
    expect(lines).toMatchObject([{ reason: 'timeout' }]);
    await store.close();
  });

  it('is reached again by another connection', async () => {
    const server = await RespServer.start();
    const clock = new ManualClock();
    const { store, connections, logged } = await open(server.port, { timeoutMs: 50, clock });
    server.answer = () => undefined;
    const answer = store.read(['a']);
    await clock.advance(50);
    expect(await answer).toEqual(AWAY);
    await logged(({ reason }) => reason === 'timeout');
    server.answer = emptyStore;
    while (!store.isConnected()) {
      // What is waited for is the pause before the next attempt: of the attempt itself the time stands still.
      await clock.advance(connections() === 1 && server.sockets.size === 0 ? 125 : 0);
      await turn();
    }
    expect(connections()).toBe(2);
    expect(await store.read(['a'])).toEqual({ state: 'answered', value: [{ kind: 'nothing' }] });
  });
});

describe('over TLS', () => {
  const authority = createCertificateAuthority('stores');
  const access = { authorities: authority.cert };
  const startTls = () => RespServer.start(emptyStore, authority.issue('store', '127.0.0.1'));

  it('it behaves as without TLS', async () => {
    const server = await startTls();
    const { store, logged, connections } = await open(server.port, { access, tls: true });
    expect(await store.read(['a'])).toEqual({ state: 'answered', value: [{ kind: 'nothing' }] });
    for (const socket of server.sockets) socket.end();
    expect(await logged(({ level }) => level === 'warn')).toMatchObject({ reason: 'unreachable' });
    while (connections() < 2) await turn();
    expect(await store.write('a', 'x'.repeat(MAX_VALUE_LENGTH), 1000)).toEqual({
      state: 'answered',
      value: 'written',
    });
  });

  it('its longest answers arrive, together and one after the other', async () => {
    const server = await startTls();
    const { store } = await open(server.port, { access, tls: true });
    const value = 'x'.repeat(MAX_VALUE_LENGTH);
    server.answer = ([command]) => (command === 'GETRANGE' ? bulk(value) : ':1000\r\n');
    const found = { kind: 'value', value, leftMs: 1000 };
    for (let round = 0; round < 3; round++) {
      expect(await store.read(['a', 'b', 'c'])).toEqual({ state: 'answered', value: [found, found, found] });
    }
  });

  it('bytes that were not asked for are not kept, however many come', async () => {
    const server = await startTls();
    const { store, logged } = await open(server.port, { access, tls: true });
    const [socket] = server.sockets;
    if (socket === undefined) throw new Error('a connection is there');
    const more = (): boolean => socket.write('x'.repeat(65_536));
    socket.write('$2000000000\r\n');
    socket.on('drain', more);
    more();
    expect(await logged(({ level }) => level === 'warn')).toMatchObject({
      reason: 'protocol',
      detail: 'it sends more than it was asked for',
    });
    expect(store.isConnected()).toBe(false);
    expect(socket.bytesWritten).toBeLessThan(8 * 1024 * 1024);
  });

  it('a server with an untrusted certificate is not used', async () => {
    const others = createCertificateAuthority('others');
    const server = await RespServer.start(emptyStore, others.issue('store', '127.0.0.1'));
    const { lines } = await open(server.port, { access, tls: true });
    expect(lines).toMatchObject([{ reason: 'tls' }]);
    expect(server.received).toEqual([]);
    const named = await RespServer.start(emptyStore, authority.issue('store', 'another.example'));
    expect((await open(named.port, { access, tls: true })).lines).toMatchObject([{ reason: 'tls' }]);
    const { lines: nobody } = await open(await freePort(), { access, tls: true });
    expect(nobody).toMatchObject([{ reason: 'unreachable', detail: 'ECONNREFUSED' }]);
  });
});

describe('an answer', () => {
  const answering = (command: string, bytes: string, timeoutMs: number) => async () => {
    const server = await RespServer.start((asked) =>
      asked[0] === command && asked[1] === 'a' ? bytes : emptyStore(asked, undefined as never),
    );
    return open(server.port, { timeoutMs });
  };

  it('that is longer than the longest token is refused', async () => {
    const server = await RespServer.start((asked) =>
      asked[0] === 'GETRANGE' ? bulk('x'.repeat(MAX_VALUE_LENGTH + 1)) : ':1000\r\n',
    );
    const { store } = await open(server.port);
    expect(await store.read(['a'])).toEqual({ state: 'answered', value: [{ kind: 'foreign' }] });
  });

  it('that never ends is given up in time', async () => {
    const server = await RespServer.start((asked, socket) => {
      if (asked[0] !== 'GETRANGE') return ':1000\r\n';
      const more = (): boolean => socket.write('x'.repeat(65_536));
      socket.write('$500000000\r\n');
      more();
      socket.on('drain', more);
      return undefined;
    });
    const before = process.memoryUsage().rss;
    const { store } = await open(server.port, { timeoutMs: 50 });
    expect(await store.read(['a'])).toEqual(AWAY);
    const [socket] = server.sockets;
    if (socket !== undefined) await once(socket, 'close');
    expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000);
  });

  it.each([
    ['that is cut', 'GETRANGE', '$10\r\nabc'],
    ['of another protocol', 'GETRANGE', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
    ['of another type', 'PTTL', '+soon\r\n'],
    ['of a list', 'PTTL', '*1\r\n:1\r\n'],
  ])('%s ends the connection', async (_, command, bytes) => {
    const { store, logged } = await answering(command, bytes, 200)();
    expect(await store.read(['a'])).toEqual(AWAY);
    expect(await logged(({ level }) => level === 'warn')).toMatchObject({
      msg: 'the token cache is away: each replica asks by itself',
    });
  });

  it('without a command closes the connection', async () => {
    const server = await RespServer.start();
    const { logged } = await open(server.port);
    for (const socket of server.sockets) socket.write('+OK\r\n');
    expect(await logged(({ level }) => level === 'warn')).toMatchObject({ reason: 'protocol' });
  });

  it('is unavailable if the server closes', async () => {
    const server = await RespServer.start((asked, socket) => {
      if (asked[1] !== 'a') return emptyStore(asked, socket);
      socket.end();
      return undefined;
    });
    const { store, logged } = await open(server.port);
    expect(await store.read(['a'])).toEqual(AWAY);
    expect(await logged(({ level }) => level === 'warn')).toMatchObject({
      reason: 'unreachable',
      detail: 'it closed the connection',
    });
  });

  it.each([
    ['OOM command not allowed when used memory > maxmemory', 'it has no room'],
    ["READONLY You can't write against a read only replica", 'it is a replica'],
    ['MOVED 1234 10.0.0.7:6379', 'it is one of a cluster, which is not supported (MOVED)'],
    ['secret-of-somebody is what it says', 'it answers with an error (ERR)'],
  ])('%s is told without what it says', async (error, told) => {
    const { store, logged } = await answering('SET', `-${error}\r\n`, 10_000)();
    expect(await store.write('a', 'value', 1000)).toEqual(AWAY);
    const line = await logged(({ reason }) => reason === 'refused');
    expect(line['detail']).toContain(told);
    expect(JSON.stringify(line)).not.toMatch(/somebody|10\.0\.0\.7/);
  });
});

it('commands above the bound fail at once, and the connection stays', async () => {
  const server = await RespServer.start();
  const clock = new ManualClock();
  const { store, lines, connections } = await open(server.port, { timeoutMs: 500, clock });
  server.answer = () => undefined;
  const answered = new Set<number>();
  const answers = Array.from({ length: 600 }, async (_, n) => {
    const answer = await store.read(['a']);
    answered.add(n);
    return answer;
  });
  const next = await Promise.all(answers.slice(512));
  expect(next).toEqual(next.map(() => AWAY));
  expect([...answered].filter((n) => n < 512)).toEqual([]);
  expect(store.isConnected()).toBe(true);
  expect(lines.filter(({ level }) => level === 'warn')).toEqual([]);
  expect(connections()).toBe(1);
  await clock.advance(500);
  expect(await Promise.all(answers)).toEqual(answers.map(() => AWAY));
});

it('changed credentials are used at once, by a new connection', async () => {
  const server = await RespServer.start();
  const access = { password: 'old' };
  const { store, lines, connections } = await open(server.port, { access });
  access.password = 'new';
  store.reconnect();
  while (connections() < 2) await turn();
  expect(server.received.filter(([name]) => name === 'AUTH')).toEqual([
    ['AUTH', 'old'],
    ['AUTH', 'new'],
  ]);
  expect(lines.filter(({ level }) => level === 'warn')).toEqual([]);
});

it('a closed store ends its connection, and is unavailable from then on', async () => {
  const server = await RespServer.start();
  const { store } = await open(server.port);
  const [socket] = server.sockets;
  await store.close();
  if (socket !== undefined && !socket.closed) await once(socket, 'close');
  expect(await store.read(['a'])).toEqual(AWAY);
  expect(store.isConnected()).toBe(false);
});
