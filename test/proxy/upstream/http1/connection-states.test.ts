import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type OnReadOpts, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { UpstreamUser } from '../../../../src/proxy/streams/contract.ts';
import { UpstreamFailures } from '../../../../src/proxy/upstream/failures.ts';
import { UpstreamConnection } from '../../../../src/proxy/upstream/http1/connection.ts';
import { ManualClock, settle } from '../../../support/manual-clock.ts';
import { answer, get, message, ok, post } from '../../../wire/messages.ts';
import { routeTo } from '../../../wire/sidecar.ts';

const [CONNECT_MS, RESPONSE_MS, IDLE_MS] = [5000, 20_000, 30_000];
const TRUST = Number.POSITIVE_INFINITY;

/** A user that keeps what it is told, in order. */
class Recorder implements UpstreamUser {
  readonly told: string[] = [];
  body = '';
  /** Amid `answered`. */
  onAnswered: () => void = () => {};
  #waiting: (() => void)[] = [];

  #tell(what: string): void {
    this.told.push(what);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async until(what: string): Promise<void> {
    while (!this.told.some((told) => told.startsWith(what))) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  onConnected(): void {
    this.#tell('connected');
  }
  onInterim({ status }: { status: number }): void {
    this.#tell(`informed ${status}`);
  }
  onResponse({ status }: { status: number }): void {
    this.#tell(`answered ${status}`);
    this.onAnswered();
  }
  onSwitched(): void {
    this.#tell('switched');
  }
  onData(slice: Buffer): void {
    this.body += slice.toString('latin1');
    this.#tell('data');
  }
  onEnd(trailers: readonly string[]): void {
    this.#tell(`ended${trailers.map((part) => ` ${part}`).join('')}`);
  }
  onReadEnd(): void {}
  onDrain(): void {
    this.#tell('ready');
  }
  onStalled(): void {
    this.#tell('stalled');
  }
  onError({ code }: { code: string }, delivery: string): void {
    this.#tell(`failed ${code} ${delivery}`);
  }
}

/** A connection to a server of bytes, on a clock that stands still. */
async function open(maxAgeMs = 300_000) {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepting = once(server, 'connection') as Promise<[Socket]>;
  const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  const clock = new ManualClock();
  const user = new Recorder();
  const events: string[] = [];
  const route = routeTo(
    { address },
    { timeouts: { connectMs: CONNECT_MS, responseMs: RESPONSE_MS, idleMs: IDLE_MS } },
  );
  const connection = new UpstreamConnection(user, {
    route,
    clock,
    failures: new UpstreamFailures('upstream.test'),
    maxAgeMs,
    connect: (onread) => connect({ ...address, onread, allowHalfOpen: true }),
    onReusable: () => events.push('reusable'),
    onGone: () => events.push('gone'),
  });
  const [peer] = await accepting;
  peer.on('error', () => {});
  onTestFinished(() => {
    connection.abandon();
    peer.destroy();
    server.close();
  });
  return { connection, clock, user, events, peer };
}

type Opened = Awaited<ReturnType<typeof open>>;

/** A connection on a socket of the test's own. */
function openOn(make: (onread: OnReadOpts) => Socket) {
  const clock = new ManualClock();
  const user = new Recorder();
  const events: string[] = [];
  const address = { host: '127.0.0.1', port: 1 };
  const connection = new UpstreamConnection(user, {
    route: routeTo(
      { address },
      { timeouts: { connectMs: CONNECT_MS, responseMs: RESPONSE_MS, idleMs: IDLE_MS } },
    ),
    clock,
    failures: new UpstreamFailures('upstream.test'),
    maxAgeMs: 300_000,
    connect: make,
    onReusable: () => events.push('reusable'),
    onGone: () => events.push('gone'),
  });
  onTestFinished(() => connection.abandon());
  return { clock, user, events, connection };
}

/**
 * One whose socket brings what the test says, when it says so: under TLS bytes and the end come on hold, too, because all
 * is brought that has been deciphered.
 * @param takesWrites how many; the peer has reset the connection before the next.
 */
function openDeciphered(takesWrites = Number.POSITIVE_INFINITY) {
  let writes = 0;
  const socket = new Duplex({
    read() {},
    write(_bytes, _encoding, done) {
      writes += 1;
      done(writes > takesWrites ? Object.assign(new Error('write'), { code: 'ECONNRESET' }) : null);
    },
  }) as unknown as Socket;
  let bring: (text: string) => void = () => {};
  const opened = openOn((onread) => {
    bring = (text) => {
      const bytes = Buffer.from(text, 'latin1');
      bytes.copy(onread.buffer as Buffer);
      onread.callback(bytes.length, onread.buffer as Buffer);
    };
    return socket;
  });
  socket.emit('connect');
  return { ...opened, bring: (text: string) => bring(text), socket };
}

function begin({ connection, clock }: Opened, method = 'GET'): void {
  connection.begin(method);
  connection.writer.text(get('/'));
  connection.requestSent(clock.monotonicMs());
  connection.writer.flush();
}

/** Sends a request, and has the peer answer it. */
async function ask(opened: Opened, bytes: string, until = 'ended'): Promise<Recorder> {
  begin(opened);
  await once(opened.peer, 'data');
  opened.peer.write(bytes);
  await opened.user.until(until);
  return opened.user;
}

async function connected(maxAgeMs?: number): Promise<Opened> {
  const opened = await open(maxAgeMs);
  await opened.user.until('connected');
  return opened;
}

/** One that has carried a request, and may carry another. */
async function idle(maxAgeMs?: number): Promise<Opened> {
  const opened = await connected(maxAgeMs);
  await ask(opened, ok('x'));
  return opened;
}

describe('an HTTP/1.1 upstream connection that is being made', () => {
  it('has a timeout only until it is established', async () => {
    const { connection, clock, user, events } = await open();
    await user.until('connected');
    await clock.advance(CONNECT_MS * 10);
    expect(connection.ready).toBe(true);
    expect(events).toEqual([]);
  });

  it('is given up at the connect timeout', async () => {
    const { clock, user, connection } = openOn(() => new Socket());
    await clock.advance(CONNECT_MS - 1);
    expect(user.told).toEqual([]);
    await clock.advance(1);
    expect(user.told).toEqual(['failed upstream_timeout lost']);
    expect(connection.socket.destroyed).toBe(true);
  });

  it('stays given up even if it is established afterwards', async () => {
    const { user, connection } = openOn(() => new Socket());
    connection.abandon();
    connection.socket.emit('connect');
    connection.socket.emit('secureConnect');
    expect(connection.ready).toBe(false);
    expect(user.told).toEqual([]);
  });

  it('is given up at the connect timeout amid the TLS handshake', async () => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const clock = new ManualClock();
    const user = new Recorder();
    const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
    let gone = 0;
    const connection = new UpstreamConnection(user, {
      // Nobody answers the handshake that is waited for.
      route: routeTo({ address, protocol: 'https' }, { timeouts: { connectMs: CONNECT_MS } }),
      clock,
      failures: new UpstreamFailures('upstream.test'),
      maxAgeMs: 1,
      connect: (onread) => connect({ ...address, onread }),
      onReusable: () => {},
      onGone: () => gone++,
    });
    await once(connection.socket, 'connect');
    expect(connection.ready).toBe(false);
    await clock.advance(CONNECT_MS - 1);
    expect(user.told).toEqual([]);
    await clock.advance(1);
    expect(user.told).toEqual(['failed upstream_timeout lost']);
    expect(gone).toBeGreaterThan(0);
  });

  it.each([
    ['ends', (peer: Socket) => void peer.end(), 'failed upstream_protocol_error unsent'],
    [
      'says something',
      (peer: Socket) => void peer.write('HTTP/1.1 408 Too Late\r\n\r\n'),
      'failed upstream_protocol_error unsent',
    ],
  ])('fails its request as unsent when the peer %s', async (_, act, told) => {
    const { connection, user, peer } = await connected();
    act(peer);
    await user.until('failed');
    expect(user.told).toEqual(['connected', told]);
    expect(connection.socket.destroyed).toBe(true);
  });

  it('may be returned unused and lent out later', async () => {
    const { connection, clock, user, events } = await connected();
    connection.giveBack();
    expect(events).toEqual(['reusable']);
    expect(connection.ready).toBe(false);
    expect(connection.lend(user, TRUST, clock.now())).toBe(true);
    expect(connection.ready).toBe(true);
  });
});

describe('an idle HTTP/1.1 upstream connection', () => {
  it('is lent out at once within the trusted time', async () => {
    const { connection, clock, events } = await idle();
    expect(events).toEqual(['reusable']);
    const user = new Recorder();
    await clock.advance(99);
    expect(connection.lend(user, 100, clock.now())).toBe(true);
    expect(connection.ready).toBe(true);
    expect(user.told).toEqual([]);
    // How long it may be idle is no matter while it is lent.
    await clock.advance(100_000);
    expect(connection.ready).toBe(true);
  });

  it('is checked first after a longer idle time', async () => {
    const { connection, clock } = await idle();
    const user = new Recorder();
    await clock.advance(100);
    expect(connection.lend(user, 100, clock.now())).toBe(true);
    expect(connection.ready).toBe(false);
    await user.until('connected');
    expect(connection.ready).toBe(true);
  });

  it('that ends during the check fails its request as unsent', async () => {
    const { connection, clock, peer } = await idle();
    const user = new Recorder();
    peer.end();
    await clock.advance(100);
    if (connection.lend(user, 0, clock.now())) {
      await user.until('failed');
      expect(user.told).toEqual(['failed upstream_protocol_error unsent']);
    }
    expect(connection.socket.destroyed).toBe(true);
  });

  it('that is given up during the check does not report itself ready', async () => {
    const { connection, clock } = await idle();
    const user = new Recorder();
    expect(connection.lend(user, 0, clock.now())).toBe(true);
    connection.abandon();
    await settle();
    expect(user.told).toEqual([]);
  });

  it('returned unused keeps its age and idle time', async () => {
    const { connection, clock, events, user } = await idle();
    await clock.advance(30_000);
    expect(connection.lend(user, TRUST, clock.now())).toBe(true);
    connection.giveBack();
    expect(events).toEqual(['reusable', 'reusable']);
    await clock.advance(24_999);
    expect(events).toEqual(['reusable', 'reusable']);
    await clock.advance(1);
    expect(connection.socket.destroyed).toBe(true);
  });

  it('is closed after 55 s', async () => {
    const { connection, clock, events } = await idle();
    await clock.advance(54_999);
    expect(connection.socket.destroyed).toBe(false);
    await clock.advance(1);
    expect(connection.socket.destroyed).toBe(true);
    expect(events).toContain('gone');
  });

  it.each([
    ['it may not be idle for so long', (opened: Opened) => void opened.clock.stepWall(55_000)],
    ['it is retired', ({ connection }: Opened) => connection.drain()],
    ['it is closed', ({ connection }: Opened) => void connection.socket.destroy()],
    ['it is given up', ({ connection }: Opened) => connection.abandon()],
  ])('is not lent out when %s', async (_, happen) => {
    const opened = await idle();
    happen(opened);
    const user = new Recorder();
    expect(opened.connection.lend(user, TRUST, opened.clock.now())).toBe(false);
    expect(opened.connection.ready).toBe(false);
    expect(opened.events).toContain('gone');
    expect(user.told).toEqual([]);
  });

  it('is not lent out beyond its maximal age', async () => {
    const opened = await idle(10_000);
    await opened.clock.advance(9999);
    expect(opened.connection.lend(opened.user, TRUST, opened.clock.now())).toBe(true);
    opened.connection.giveBack();
    await opened.clock.advance(1);
    expect(opened.connection.lend(opened.user, TRUST, opened.clock.now())).toBe(false);
  });

  it('refuses a request without having been lent out', async () => {
    const { connection } = await idle();
    expect(() => connection.begin('GET')).toThrow(expect.objectContaining({ code: 'internal' }));
    connection.requestSent(0);
    connection.touch();
    connection.holdResponse();
    connection.releaseResponse();
    expect(connection.onHold).toBe(false);
    expect(connection.socket.isPaused()).toBe(false);
  });
});

describe('a request on an HTTP/1.1 upstream connection', () => {
  it.each([
    ['says close', answer(200, 'x', 'Connection: close')],
    ['is of HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx'],
    ['names a timeout of nothing', ok('x', 'Keep-Alive: timeout=0')],
  ])('is the last if its answer %s', async (_, bytes) => {
    const opened = await connected();
    await ask(opened, bytes);
    expect(opened.events).toEqual(['gone']);
    expect(opened.connection.socket.destroyed).toBe(true);
  });

  it('is the last of a connection beyond its age or of a retired one', async () => {
    const old = await connected(1000);
    await old.clock.advance(1000);
    await ask(old, ok('x'));
    expect(old.events).toEqual(['gone']);
    const retired = await connected();
    retired.connection.drain();
    await ask(retired, ok('x'));
    expect(retired.events).toEqual(['gone']);
  });

  it('has the answer timed from its end, and then each piece', async () => {
    const opened = await connected();
    begin(opened);
    await opened.clock.advance(RESPONSE_MS - 1);
    expect(opened.user.told).toEqual(['connected']);
    await once(opened.peer, 'data');
    opened.peer.write(message('HTTP/1.1 200 OK', ['Content-Length: 10'], 'hello'));
    await opened.user.until('data');
    await opened.clock.advance(IDLE_MS - 1);
    expect(opened.user.told).not.toContain('stalled');
    opened.connection.touch();
    await opened.clock.advance(IDLE_MS - 1);
    expect(opened.user.told).not.toContain('stalled');
    await opened.clock.advance(1);
    expect(opened.user.told).toContain('stalled');
  });

  it('is lost if it is not answered in time', async () => {
    const opened = await connected();
    begin(opened);
    await opened.clock.advance(RESPONSE_MS);
    expect(opened.user.told).toEqual(['connected', 'failed upstream_timeout lost']);
    expect(opened.connection.socket.destroyed).toBe(true);
  });

  it('is stalled, not its answer late, until it has been sent whole', async () => {
    const opened = await connected();
    opened.connection.begin('POST');
    opened.connection.touch();
    await opened.clock.advance(IDLE_MS - 1);
    expect(opened.user.told).toEqual(['connected']);
    await opened.clock.advance(1);
    expect(opened.user.told).toEqual(['connected', 'stalled']);
    opened.connection.requestSent(opened.clock.monotonicMs());
    // Bytes that move say nothing of the answer.
    await opened.clock.advance(RESPONSE_MS - 1);
    opened.connection.touch();
    await opened.clock.advance(1);
    expect(opened.user.told.at(-1)).toBe('failed upstream_timeout lost');
  });

  it.each<[string, (peer: Socket) => void, string]>([
    ['ends', (peer) => void peer.end(), 'unanswered'],
    ['resets', (peer) => void peer.resetAndDestroy(), 'unanswered'],
    ['ends amid a head', (peer) => void peer.end('HTTP/1.1 2'), 'lost'],
    ['ends after an informational answer', (peer) => void peer.end('HTTP/1.1 103 Hints\r\n\r\n'), 'lost'],
    ['answers no HTTP', (peer) => void peer.write('SSH-2.0\r\n\r\n'), 'lost'],
  ])('on a reused connection where the peer %s is %s', async (_, act, delivery) => {
    const opened = await idle();
    const user = new Recorder();
    opened.connection.lend(user, TRUST, opened.clock.now());
    begin(opened);
    await once(opened.peer, 'data');
    act(opened.peer);
    await user.until('failed');
    expect(user.told.at(-1)).toBe(`failed upstream_protocol_error ${delivery}`);
  });

  it('is lost when the socket is closed', async () => {
    const opened = await connected();
    begin(opened);
    opened.connection.socket.destroy();
    await opened.user.until('failed');
    expect(opened.user.told).toEqual(['connected', 'failed upstream_protocol_error lost']);
  });

  it('has each piece of an early answer timed', async () => {
    const { connection, clock, user, bring } = openDeciphered();
    connection.begin('POST');
    bring(message('HTTP/1.1 200 OK', ['Content-Length: 5'], 'x'));
    connection.requestSent(clock.monotonicMs());
    await clock.advance(IDLE_MS - 1);
    expect(user.told).not.toContain('stalled');
    await clock.advance(1);
    expect(user.told).toContain('stalled');
  });

  it('is unsent if none of it left', () => {
    const { connection, user, socket } = openDeciphered();
    connection.begin('GET');
    connection.writer.text(get('/'));
    connection.requestSent(0);
    socket.emit('error', new Error('gone'));
    expect(user.told).toEqual(['connected', 'failed upstream_protocol_error unsent']);
  });

  it('cannot open a tunnel on a pooled connection', () => {
    const { connection, user, bring } = openDeciphered();
    connection.begin('CONNECT');
    connection.writer.text(get('/'));
    connection.writer.flush();
    bring('HTTP/1.1 200 OK\r\n\r\n');
    expect(user.told).toEqual(['connected', 'failed internal lost']);
  });

  it('keeps its connection although that was returned', () => {
    const { connection, user, events, bring } = openDeciphered();
    connection.begin('GET');
    connection.requestSent(0);
    connection.giveBack();
    expect(events).toEqual([]);
    bring(ok('x'));
    expect(user.told.at(-1)).toBe('ended');
  });

  it('whose answer was paused leaves a connection that is checked before it is lent', async () => {
    const { connection, clock, bring } = openDeciphered();
    connection.begin('GET');
    connection.requestSent(0);
    connection.pause();
    connection.resume();
    bring(message('HTTP/1.1 200 OK', ['Content-Length: 2'], 'x'));
    connection.pause();
    connection.resume();
    bring('y');
    const next = new Recorder();
    expect(connection.lend(next, 1000, clock.now())).toBe(true);
    expect(connection.ready).toBe(false);
    await next.until('connected');
  });

  it('is told when the socket takes more of it', async () => {
    const { connection, clock, user, socket } = openDeciphered();
    socket.emit('drain');
    expect(user.told).toEqual(['connected']);
    connection.begin('POST');
    connection.touch();
    await clock.advance(IDLE_MS - 1);
    socket.emit('drain');
    expect(user.told).toEqual(['connected', 'ready']);
    await clock.advance(IDLE_MS - 1);
    expect(user.told).toEqual(['connected', 'ready']);
    await clock.advance(1);
    expect(user.told).toEqual(['connected', 'ready', 'stalled']);
  });

  it('that could not leave is not answered by bytes received earlier', async () => {
    const opened = openDeciphered(0);
    opened.connection.begin('GET');
    opened.connection.writer.text(get('/'));
    opened.connection.writer.flush();
    await settle();

    opened.bring(answer(408, 'you said nothing'));

    expect(opened.user.told).toEqual(['connected', 'failed upstream_protocol_error unsent']);
  });

  it('that breaks off is answered by an answer received before', async () => {
    const opened = openDeciphered(1);
    opened.connection.begin('POST');
    opened.connection.writer.text(post('/', ''));
    opened.connection.writer.flush();
    opened.connection.writer.text('the rest');
    opened.connection.writer.flush();
    await settle();

    opened.bring(answer(413, 'too much'));

    expect(opened.user.told).toEqual(['connected', 'answered 413', 'data', 'ended']);
  });

  it('that breaks off is lost if its answer is delimited by the connection', async () => {
    const opened = openDeciphered(1);
    opened.connection.begin('POST');
    opened.connection.writer.text(post('/', ''));
    opened.connection.writer.flush();
    opened.connection.writer.text('the rest');
    opened.connection.writer.flush();
    opened.bring(message('HTTP/1.1 200 OK', [], 'a part'));

    opened.socket.push(null);
    opened.socket.resume();
    await opened.user.until('failed');

    expect(opened.user.told).toEqual([
      'connected',
      'answered 200',
      'data',
      'failed upstream_protocol_error lost',
    ]);
  });

  it('may switch protocols, which passes on the bytes after the head', async () => {
    const opened = await connected();
    begin(opened);
    await once(opened.peer, 'data');
    opened.peer.write(
      `${message('HTTP/1.1 101 Switching Protocols', ['Connection: upgrade', 'Upgrade: x'])}early`,
    );
    await opened.user.until('switched');
    const later: string[] = [];
    const arrived = Promise.withResolvers<void>();
    const early = opened.connection.takeOver((bytes) => {
      later.push(bytes.toString());
      arrived.resolve();
    });
    expect(early?.toString()).toBe('early');
    opened.peer.write('later');
    await arrived.promise;
    expect(later.join('')).toBe('later');
    opened.peer.end();
    await once(opened.connection.socket, 'end');
    // Its owner's to act upon.
    await opened.clock.advance(600_000);
    expect(opened.connection.socket.destroyed).toBe(false);
    expect(opened.user.told).toEqual(['connected', 'switched']);
  });
});

describe('a held answer on an HTTP/1.1 upstream connection', () => {
  async function held(bytes: string): Promise<Opened> {
    const opened = await connected();
    opened.user.onAnswered = () => opened.connection.holdResponse();
    await ask(opened, bytes, 'answered');
    return opened;
  }

  it('continues with later bytes, each timed', async () => {
    const opened = await held(message('HTTP/1.1 401 No', ['Content-Length: 4'], 'no'));
    await opened.clock.advance(100_000);
    opened.connection.releaseResponse();
    expect(opened.connection.socket.isPaused()).toBe(false);
    opened.peer.write('!!');
    await opened.user.until('ended');
    expect(opened.user.body).toBe('no!!');
  });

  it('that is discarded is read to its end if that is near, and the connection is reused', async () => {
    const opened = await held(message('HTTP/1.1 401 No', ['Content-Length: 4'], 'no'));
    opened.connection.discardResponse();
    expect(opened.events).toEqual([]);
    opened.peer.write('!!');
    while (opened.events.length === 0) await settle();
    expect(opened.events).toEqual(['reusable']);
    expect(opened.user.told).toEqual(['connected', 'answered 401']);
    // Not trusted: its end may have come unread.
    const next = new Recorder();
    expect(opened.connection.lend(next, 1000, opened.clock.now())).toBe(true);
    expect(opened.connection.ready).toBe(false);
    await next.until('connected');
  });

  it('that is discarded and does not end within a second is cut', async () => {
    const opened = await held(message('HTTP/1.1 401 No', ['Content-Length: 4'], 'no'));
    opened.connection.discardResponse();
    await opened.clock.advance(999);
    expect(opened.events).toEqual([]);
    await opened.clock.advance(1);
    expect(opened.connection.socket.destroyed).toBe(true);
    expect(opened.user.told).toEqual(['connected', 'answered 401']);
  });

  it.each([
    [65_536, 'reusable'],
    [65_537, 'gone'],
  ])('of %i bytes that is discarded leaves the connection %s', async (bytes, event) => {
    const opened = await held(message('HTTP/1.1 401 No', [`Content-Length: ${bytes}`]));
    opened.connection.discardResponse();
    opened.peer.write('x'.repeat(bytes));
    while (opened.events.length === 0) await settle();
    expect(opened.events[0]).toBe(event);
  });

  it.each([
    ['says close', answer(401, '', 'Connection: close')],
    ['ends with the connection', message('HTTP/1.1 401 No', [])],
  ])('that is discarded and %s is cut', async (_, bytes) => {
    const opened = await held(bytes);
    opened.connection.discardResponse();
    if (bytes.includes('close')) expect(opened.connection.socket.destroyed).toBe(true);
    else {
      opened.peer.end();
      await once(opened.connection.socket, 'close');
      expect(opened.events).not.toContain('reusable');
    }
  });

  it('to a request that was not sent whole is cut when discarded', async () => {
    const opened = await connected();
    opened.user.onAnswered = () => opened.connection.holdResponse();
    opened.connection.begin('POST');
    opened.connection.writer.text(message('POST / HTTP/1.1', ['Host: a', 'Content-Length: 10']));
    opened.connection.writer.flush();
    await once(opened.peer, 'data');
    opened.peer.write(answer(401, 'no'));
    await opened.user.until('answered');
    opened.connection.discardResponse();
    expect(opened.connection.socket.destroyed).toBe(true);
  });

  it('that broke off meanwhile is lost when it continues', () => {
    const { connection, user, bring, socket } = openDeciphered();
    user.onAnswered = () => connection.holdResponse();
    connection.begin('GET');
    connection.writer.text(get('/'));
    connection.writer.flush();
    connection.requestSent(0);
    bring(message('HTTP/1.1 401 No', ['Content-Length: 6'], 'on'));
    socket.emit('error', Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
    // Only how it ended first counts.
    socket.emit('end');
    expect(user.told).toEqual(['connected', 'answered 401']);
    connection.releaseResponse();
    expect(user.told.at(-1)).toBe('failed upstream_protocol_error lost');
  });

  it('whose connection has ended is not read when discarded', () => {
    const { connection, user, events, bring, socket } = openDeciphered();
    user.onAnswered = () => connection.holdResponse();
    connection.begin('GET');
    connection.requestSent(0);
    bring(answer(401, 'no'));
    socket.emit('end');
    connection.discardResponse();
    expect(events).toEqual(['gone']);
    expect(user.told).toEqual(['connected', 'answered 401']);
  });

  it('whose connection was abandoned meanwhile is ignored when discarded', () => {
    const { connection, user, events, bring } = openDeciphered();
    user.onAnswered = () => connection.holdResponse();
    connection.begin('GET');
    connection.requestSent(0);
    bring(answer(401, 'no'));
    connection.abandon();
    connection.discardResponse();
    expect(events).toEqual(['gone']);
  });

  it('that is discarded is read from the bytes already received', () => {
    const { connection, user, events, bring } = openDeciphered();
    user.onAnswered = () => connection.holdResponse();
    connection.begin('GET');
    connection.requestSent(0);
    bring(answer(401, 'no'));
    connection.discardResponse();
    expect(events).toEqual(['reusable']);
    expect(user.told).toEqual(['connected', 'answered 401']);
  });

  it('that is not HTTP fails its request for good although nothing of that was sent', () => {
    const { connection, user, bring } = openDeciphered();
    connection.begin('GET');
    connection.requestSent(0);
    bring('SSH-2.0\r\n\r\n');
    expect(user.told).toEqual(['connected', 'failed upstream_protocol_error lost']);
  });
});
