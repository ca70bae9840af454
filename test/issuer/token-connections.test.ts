/** Connections of the token listener, by a clock that stands still: what ends them is what they are sent, or nothing. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createIssuerMetrics } from '../../src/issuer/metrics.ts';
import {
  DEFAULT_LIMITS,
  startTokenListener,
  type TokenListenerLimits,
} from '../../src/issuer/token-listener.ts';
import type { TokenService } from '../../src/issuer/token-service.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

type TokenMessage = Parameters<TokenService>[0];

async function listen(limits: Partial<TokenListenerLimits> = {}, answerAfter = Promise.resolve()) {
  const clock = new ManualClock();
  const registry = new Registry();
  const { log, lines } = captureLog();
  const asked: TokenMessage[] = [];
  const { address, close } = await startTokenListener({
    listen: { host: '127.0.0.1', port: 0 },
    limits: { ...DEFAULT_LIMITS, ...limits },
    endpointAt: () => async (message) => {
      asked.push(message);
      await answerAfter;
      return { status: 200, headers: { 'X-Own': 'yes' }, body: `{"n":${asked.length}}` };
    },
    metrics: createIssuerMetrics(registry),
    clock,
    log,
  });
  onTestFinished(() => close(0));
  return {
    clock,
    asked,
    lines,
    close,
    counted: async (result: string) =>
      Number(
        new RegExp(`tokens_total\\{result="${result}"\\} (\\d+)`).exec(await registry.metrics())?.[1] ?? 0,
      ),
    dropped: async (reason: string) =>
      Number(new RegExp(`dropped_total\\{reason="${reason}"\\} (\\d+)`).exec(await registry.metrics())?.[1]),
    async open() {
      const socket = connect(address.port, '127.0.0.1').on('error', () => undefined);
      onTestFinished(() => void socket.destroy());
      let text = '';
      socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
      await once(socket, 'connect');
      return {
        socket,
        write: (sent: string) => void socket.write(sent, 'latin1'),
        closed: () => closed(socket).then(() => text),
        async received(part: string) {
          while (!text.includes(part)) await once(socket, 'data');
          const found = text;
          text = '';
          return found;
        },
      };
    },
  };
}

function closed(socket: Socket): Promise<void> {
  return socket.closed
    ? Promise.resolve()
    : new Promise((resolve) => void socket.once('close', () => resolve()));
}

const GET = 'GET /token HTTP/1.1\r\nhost: x\r\n\r\n';
const post = (length: number, ...fields: readonly string[]): string =>
  ['POST /token HTTP/1.1', 'host: x', `content-length: ${length}`, ...fields, '', ''].join('\r\n');

describe('an answer', () => {
  it('has the common header fields and its own, and the connection stays', async () => {
    const { open } = await listen();
    const { write, received } = await open();
    write(GET);
    const text = await received('{"n":1}');
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    for (const field of [
      'Content-Type: application/json',
      'Cache-Control: no-store',
      'Pragma: no-cache',
      'X-Own: yes',
      'Content-Length: 7',
    ])
      expect(text).toContain(`${field}\r\n`);
    expect(text).not.toContain('Connection: close');
    write(GET);
    await received('{"n":2}');
  });

  it('to bytes that are not HTTP after a request is 400, and closes the connection', async () => {
    const { open, counted } = await listen();
    const { write, received, closed: ended, socket } = await open();
    write(GET);
    await received('{"n":1}');
    write('nonsense\r\n\r\n');
    expect(await received('not valid HTTP/1.1')).toMatch(
      /^HTTP\/1\.1 400 Bad Request\r\n(?:.*\r\n)*Connection: close\r\n/,
    );
    socket.end();
    await ended();
    expect(await counted('malformed')).toBe(1);
  });

  it.each([
    ['two Hosts', 'GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n'],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
  ])('to %s is 400, in JSON, and counted', async (_, request) => {
    const { open, counted, lines } = await listen();
    const { write, received } = await open();
    write(request);
    const text = await received('}');
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).toContain(
      '{"error":"invalid_request","error_description":"the request needs one Host header"}',
    );
    expect(await counted('malformed')).toBe(1);
    expect(JSON.parse(lines[0] as string)).toMatchObject({ level: 'warn', result: 'malformed', status: 400 });
  });

  it('to HTTP/1.0 needs no Host', async () => {
    const { open, asked } = await listen();
    const { write, closed: ended } = await open();
    write('GET /token HTTP/1.0\r\n\r\n');
    expect(await ended()).toContain('{"n":1}');
    expect(asked).toMatchObject([
      { method: 'GET', target: '/token', body: Buffer.alloc(0), address: '127.0.0.1' },
    ]);
  });

  it.each([
    [
      'a head that is too large',
      `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
      '431 Request Header Fields Too Large',
      'the header section is too large',
    ],
    [
      'CONNECT',
      'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n',
      '404 Not Found',
      'there is only the token endpoint',
    ],
  ])('to %s is by its own status', async (_, request, status, reason) => {
    const { open } = await listen();
    const { write, received } = await open();
    write(request);
    const text = await received('}');
    expect(text).toMatch(`HTTP/1.1 ${status}\r\n`);
    expect(text).toContain(reason);
    expect(text).toContain(`Content-Length: ${text.split('\r\n\r\n')[1]?.length}\r\n`);
  });

  it('to a request that does not come whole in time is 408', async () => {
    const { open } = await listen({ requestTimeoutMs: 50 });
    const { write, received } = await open();
    write(post(10));
    expect(await received('did not arrive in time')).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
  });

  it('that is not read closes the connection after its timeout', async () => {
    const never = Promise.withResolvers<void>();
    const { open, clock, asked } = await listen({}, never.promise);
    const { write, socket, closed: ended } = await open();
    write(post(3, 'expect: 100-continue'));
    await once(socket, 'data');
    write('a=1');
    await until(() => asked.length !== 0);
    expect(asked[0]?.body).toEqual(Buffer.from('a=1'));
    never.resolve();
    expect(clock.pendingTimers).toBe(0);
    socket.end();
    expect(await ended()).toContain('{"n":1}');
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a body that is too large', () => {
  it('is answered before it has come, and more than a megabyte of it ends the connection', async () => {
    const { open, asked, clock } = await listen({ bodyBytes: 10 });
    const { write, received, closed: ended } = await open();
    write(post(8 * 2 ** 20));
    expect(await received('}')).toContain('Connection: close');
    expect(asked).toMatchObject([{ body: 'too_large' }]);
    write('x'.repeat(2 ** 20 + 1));
    await ended();
    expect(clock.pendingTimers).toBe(0);
  });

  it('is read to its end for a second at most', async () => {
    const { open, clock } = await listen({ bodyBytes: 10 });
    const [whole, half] = [await open(), await open()];
    whole.write(post(11));
    half.write(post(11));
    for (const { received } of [whole, half]) await received('}');
    whole.write('x'.repeat(11));
    await whole.closed();
    expect(half.socket.closed).toBe(false);
    await clock.advance(1000);
    await half.closed();
  });

  it.each([
    ['as much as may be', '5\r\nabcde\r\n5\r\nfghij\r\n0\r\n\r\n', Buffer.from('abcdefghij')],
    ['a byte more', '5\r\nabcde\r\n6\r\nfghijk\r\n0\r\n\r\n', 'too_large'],
  ])('is found out as it comes: %s', async (_, body, read) => {
    const { open, asked } = await listen({ bodyBytes: 10 });
    const { write, received } = await open();
    write(`POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${body}`);
    await received('}');
    expect(asked).toMatchObject([{ body: read }]);
  });

  it('gets no 100 Continue', async () => {
    const { open } = await listen({ bodyBytes: 10 });
    const [small, large] = [await open(), await open()];
    small.write(post(10, 'expect: 100-continue'));
    large.write(post(11, 'expect: 100-continue'));
    expect(await small.received('\r\n\r\n')).toMatch(/^HTTP\/1\.1 100 /);
    expect(await large.received('}')).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('a connection', () => {
  it('that is reset amid a request is counted as cancelled', async () => {
    const { open, counted } = await listen();
    const { write, received, socket } = await open();
    write(post(10, 'expect: 100-continue'));
    await received('100 Continue');
    write('half');
    socket.resetAndDestroy();
    await until(async () => (await counted('aborted')) !== 0);
    expect([await counted('aborted'), await counted('malformed')]).toEqual([1, 0]);
  });

  it('that ends amid a request is answered with 400', async () => {
    const { open, counted } = await listen();
    const { write, received, socket } = await open();
    write(`${post(10)}half`);
    socket.end();
    expect(await received('}')).toMatch(/^HTTP\/1\.1 400 /);
    expect([await counted('aborted'), await counted('malformed')]).toEqual([0, 1]);
  });

  it('with too many pipelined requests is closed, and counted once', async () => {
    const never = new Promise<void>(() => undefined);
    const { open, counted, dropped, asked } = await listen({ pipelined: 2 }, never);
    const { write, closed: ended } = await open();
    write(GET + GET);
    await until(() => asked.length >= 2);
    expect(await counted('malformed')).toBe(0);
    write(GET + GET);
    await ended();
    expect([asked.length, await counted('malformed')]).toEqual([2, 1]);
    expect([await dropped('sent_ahead'), await dropped('displaced')]).toEqual([1, 0]);
  });

  it('that replaces another is counted', async () => {
    const { open, dropped } = await listen({ connections: 1 });
    const first = await open();
    await open();
    await first.closed();
    expect([await dropped('sent_ahead'), await dropped('displaced')]).toEqual([0, 1]);
  });

  it('closes with the service if it is idle, or after its answer', async () => {
    const never = new Promise<void>(() => undefined);
    const { open, clock, asked, close } = await listen({}, never);
    const [idle, busy] = [await open(), await open()];
    busy.write(GET);
    await until(() => asked.length !== 0);
    const ending = close(5000);
    expect(close(1)).toBe(ending);
    await idle.closed();
    await clock.advance(4999);
    expect(busy.socket.closed).toBe(false);
    await clock.advance(1);
    await busy.closed();
    await ending;
    expect(clock.pendingTimers).toBe(0);
  });
});
