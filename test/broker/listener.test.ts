/** The listener alone, over TLS: how long callers may take, who gives way, and how it ends. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { DEFAULT_LIMITS, startBrokerListener } from '../../src/broker/broker-listener.ts';
import type { BrokerResponse } from '../../src/broker/messages.ts';
import type { TokenEndpoint } from '../../src/broker/token-endpoint.ts';
import type { ServingCertificate } from '../../src/platform/tls/serving-certificate.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { formOf } from './running-broker.ts';

const BODY_BYTES = 16 * 1024;

const HOST = 'broker';
const authority = createCertificateAuthority('brokers of this file');

const GIVEN: BrokerResponse = { kind: 'given', token: 'token-1', expiresInSeconds: 300 };

function certificateOf(subject: string): ServingCertificate {
  const { cert, key } = authority.issue(subject, HOST, '127.0.0.1');
  return { cert, key, startsAtMs: 0, expiresAtMs: Number.MAX_SAFE_INTEGER };
}

interface Starting {
  readonly limits?: Partial<typeof DEFAULT_LIMITS>;
  readonly endpoint?: (...asked: Parameters<TokenEndpoint>) => Promise<BrokerResponse>;
}

async function start({ limits = {}, endpoint = () => Promise.resolve(GIVEN) }: Starting = {}) {
  const clock = new ManualClock();
  const dropped: string[] = [];
  const answered: string[] = [];
  const waiting = new Set<() => void>();
  function counted(list: string[], what: string): void {
    list.push(what);
    for (const wake of waiting) wake();
  }
  let certificate = certificateOf('first');
  const changes = new Set<(next: ServingCertificate) => void>();
  const listener = await startBrokerListener({
    listen: { host: '0.0.0.0', port: 0 },
    certificates: {
      current: () => certificate,
      onChange(callback) {
        changes.add(callback);
        return () => changes.delete(callback);
      },
      close: () => Promise.resolve(),
    },
    endpoint,
    limits: { ...DEFAULT_LIMITS, ...limits },
    metrics: {
      answered: (result) => counted(answered, result),
      connectionDropped: (reason) => counted(dropped, reason),
    },
    clock,
    log: captureLog().log,
  });
  const { port } = listener.address;
  const open = new Set<Socket>();
  let drained: Promise<void> | undefined;
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    drained ??= listener.drain(0, 0);
    await clock.advance(1);
    await drained;
  });
  function kept<One extends Socket>(socket: One): One {
    open.add(socket);
    socket.on('error', () => undefined);
    return socket;
  }
  return {
    clock,
    listener,
    answered,
    dropped,
    changes,
    /** Resolves when what has been counted is so. */
    async until(isSo: () => boolean): Promise<void> {
      while (!isSo()) {
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.add(resolve);
        await promise;
        waiting.delete(resolve);
      }
    },
    drain(timeoutMs: number): Promise<void> {
      drained = listener.drain(0, timeoutMs);
      return drained;
    },
    present(subject: string): void {
      certificate = certificateOf(subject);
      for (const changed of changes) changed(certificate);
    },
    /** Without a byte of TLS. */
    async silent(localAddress = '127.0.0.1'): Promise<Socket> {
      const socket = kept(connectTcp({ host: '127.0.0.1', port, localAddress }));
      await once(socket, 'connect');
      return socket;
    },
    async connect(localAddress = '127.0.0.1'): Promise<TLSSocket> {
      // TLS passes the local address on to TCP, though its type does not say so.
      const options: ConnectionOptions & { localAddress: string } = {
        host: '127.0.0.1',
        port,
        ca: authority.cert,
        servername: HOST,
        localAddress,
      };
      const socket = kept(connect(options));
      await once(socket, 'secureConnect');
      return socket;
    },
  };
}

const FORM = formOf('a.b.c');

function head(length = Buffer.byteLength(FORM)): string {
  return `POST /token/payments/payments HTTP/1.1\r\nHost: broker\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${length}\r\n\r\n`;
}

const REQUEST = head() + FORM;

async function allOf(socket: Socket): Promise<string> {
  let text = '';
  // A reset ends it, too.
  try {
    for await (const chunk of socket) text += String(chunk);
  } catch {}
  return text;
}

async function nextOf(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return String(chunk);
}

/** Nobody answers. */
const never = (): Promise<BrokerResponse> => new Promise(() => undefined);

it('1024 handshakes at once are allowed, each for seconds', () => {
  expect(DEFAULT_LIMITS).toEqual({
    connections: 1024,
    handshakeMs: 10_000,
    requestMs: 10_000,
    answerMs: 20_000,
  });
  expect(BODY_BYTES).toBe(16_384);
});

it('a stalled handshake is ended, and others are served meanwhile', async () => {
  const { silent, connect: call, dropped, until } = await start({ limits: { handshakeMs: 100 } });
  const stuck = await silent();
  const other = await call();
  other.write(REQUEST);
  expect(await nextOf(other)).toMatch(/^HTTP\/1\.1 200 /);
  await allOf(stuck);
  await until(() => dropped.includes('handshake'));
  expect(dropped).toEqual(['handshake']);
});

it('a caller that is silent after its handshake, or whose body is too slow, is disconnected', async () => {
  const {
    connect: call,
    answered,
    until,
    listener,
  } = await start({
    limits: { handshakeMs: 100, requestMs: 100 },
  });
  expect(await allOf(await call())).toMatch(/^HTTP\/1\.1 408 /);
  const slow = await call();
  slow.write(REQUEST.slice(0, -1));
  expect(await allOf(slow)).toMatch(/^HTTP\/1\.1 408 /);
  await until(() => answered.length === 1);
  expect(answered).toEqual(['aborted']);
  expect(listener.inFlight).toBe(0);
});

it('a caller that stops reading its answer is disconnected', async () => {
  const token = 'a'.repeat(32 * 1024 * 1024);
  const {
    connect: call,
    clock,
    listener,
    answered,
    until,
  } = await start({
    endpoint: () => Promise.resolve({ ...GIVEN, token }),
  });
  const socket = await call();
  socket.pause();
  socket.write(REQUEST);
  await once(socket, 'readable');
  await clock.advance(DEFAULT_LIMITS.answerMs - 1);
  expect(listener.inFlight).toBe(1);
  await clock.advance(1);
  await until(() => answered.length === 1);
  expect(listener.inFlight).toBe(0);
  expect((await allOf(socket)).length).toBeLessThan(token.length);
});

it('a caller that sends more requests while its answers are unread is disconnected', async () => {
  let most = 0;
  let asked: () => void = () => undefined;
  const {
    connect: call,
    dropped,
    listener,
    until,
  } = await start({
    endpoint() {
      most = Math.max(most, listener.inFlight);
      asked();
      // Less than what makes Node stop reading.
      return Promise.resolve({ ...GIVEN, token: 'a'.repeat(4096) });
    },
  });
  // The caller sees no end before it has read what came before it.
  const accepted = Promise.withResolvers<Socket>();
  const onAccepted = (message: unknown): void => accepted.resolve((message as { socket: Socket }).socket);
  subscribe('net.server.socket', onAccepted);
  onTestFinished(() => void unsubscribe('net.server.socket', onAccepted));
  const socket = await call();
  socket.pause();
  const ended = once(await accepted.promise, 'close').then(() => true);
  let isOver = false;
  while (!isOver) {
    const next = new Promise<false>((resolve) => {
      asked = () => resolve(false);
    });
    socket.write(REQUEST);
    isOver = await Promise.race([ended, next]);
  }
  expect(most).toBe(2);
  expect(dropped).toEqual(['sent_ahead']);
  await until(() => listener.inFlight === 0);
});

it('above the bound of connections, one of the address with most is closed', async () => {
  const { silent, connect: call, dropped } = await start({ limits: { connections: 8 } });
  const few = await call('127.0.0.2');
  const flood: Socket[] = [];
  for (let n = 0; n < 7; n++) flood.push(await silent());
  const newcomer = await call('127.0.0.3');
  await allOf(flood[0] as Socket);
  for (const socket of [few, newcomer]) {
    socket.write(REQUEST);
    expect(await nextOf(socket)).toMatch(/^HTTP\/1\.1 200 /);
  }
  expect(dropped[0]).toBe('displaced');
  expect(flood.slice(1).every(({ destroyed }) => !destroyed)).toBe(true);
});

it('a renewed certificate is served to new connections, and existing ones stay', async () => {
  const { connect: call, present, drain, changes, clock } = await start();
  const before = await call();
  present('second');
  const after = await call();
  expect([before, after].map((socket) => socket.getPeerCertificate().subject.CN)).toEqual([
    'first',
    'second',
  ]);
  before.write(REQUEST);
  expect(await nextOf(before)).toMatch(/^HTTP\/1\.1 200 /);
  const drained = drain(1000);
  await clock.advance(0);
  await drained;
  expect(changes.size).toBe(0);
});

it('waiting requests are told apart by their address', async () => {
  const from: string[] = [];
  const { connect } = await start({
    endpoint(_address, _body, _beganAtMs, address) {
      from.push(address);
      return Promise.resolve(GIVEN);
    },
  });
  for (const address of ['127.0.0.1', '127.0.0.2']) {
    const socket = await connect(address);
    socket.write(REQUEST);
    await once(socket, 'data');
  }
  expect(from).toEqual(['127.0.0.1', '127.0.0.2']);
});

it('drains at once of handshakes and of callers that sent nothing', async () => {
  const { silent, connect: call, drain, clock } = await start();
  const unused = [await silent(), await call()];
  const answered = await call();
  answered.write(REQUEST);
  await nextOf(answered);
  const drained = drain(60_000);
  await clock.advance(0);
  await drained;
  await Promise.all([...unused, answered].map(allOf));
});

it('answers a request of which a part had come when it began to drain', async () => {
  const { connect: call, drain, clock } = await start();
  const [begun, idle] = [await call(), await call()];
  begun.write(REQUEST.slice(0, 20));
  // An answer to who wrote later says that this has come, too.
  idle.write(REQUEST);
  await nextOf(idle);
  const drained = drain(60_000);
  await clock.advance(0);
  await allOf(idle);
  begun.write(REQUEST.slice(20));
  expect(await allOf(begun)).toMatch(/^HTTP\/1\.1 200 [\s\S]*Connection: close[\s\S]*token-1/);
  await drained;
});

it('ends what is still in flight when the time for draining is over', async () => {
  const { connect: call, drain, clock, listener, answered, until } = await start({ endpoint: never });
  const asking = await call();
  asking.write(REQUEST);
  const begun = await call();
  begun.write(REQUEST.slice(0, 20));
  await until(() => listener.inFlight !== 0);
  let isOver = false;
  const drained = drain(5000).then(() => {
    isOver = true;
  });
  await clock.advance(4999);
  expect(isOver).toBe(false);
  await clock.advance(1);
  await drained;
  expect(await Promise.all([asking, begun].map(allOf))).toEqual(['', '']);
  await until(() => answered.length === 1);
  expect(answered).toEqual(['aborted']);
});
