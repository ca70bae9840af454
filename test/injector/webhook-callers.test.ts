/** What the listener makes of callers: those it answers, and those whose connection ends. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startWebhookListener } from '../../src/injector/webhook-listener.ts';
import { helloOf } from '../proxy/tls/hello.ts';
import { until } from '../support/until.ts';
import { answered, head, JSON_TYPE, listeningWebhook } from './listening-webhook.ts';

const echo = async (body: Buffer) => ({ status: 200, body: body.toString() });
const never = () => new Promise<never>(() => undefined);

function closed(socket: Socket): Promise<void> {
  socket.on('error', () => undefined);
  return socket.closed
    ? Promise.resolve()
    : new Promise((resolve) => void socket.once('close', () => resolve()));
}

async function logged(lines: readonly string[], text: string): Promise<void> {
  await until(() => lines.join().includes(text));
}

describe('an answer', () => {
  it.each([
    ['a review', head('/echo', JSON_TYPE, 'content-length: 5'), 200],
    [
      'one with a timeout in its address, as API servers send it',
      head('/echo?timeout=5s', JSON_TYPE, 'content-length: 5'),
      200,
    ],
    [
      'one in a charset',
      head('/echo', 'content-type: Application/JSON ; charset=utf-8', 'content-length: 5'),
      200,
    ],
    ['another path', head('/', JSON_TYPE, 'content-length: 5'), 404],
    ['a GET', head('/echo', JSON_TYPE, 'content-length: 5').replace('POST', 'GET'), 405],
    ['no media type', head('/echo', 'content-length: 5'), 415],
    [
      'a media type that begins like JSON',
      head('/echo', 'content-type: application/jsonp', 'content-length: 5'),
      415,
    ],
    [
      'a media type with JSON in it',
      head('/echo', 'content-type: x-application/json', 'content-length: 5'),
      415,
    ],
  ])('to %s', async (_, request, status) => {
    const { open } = await listeningWebhook({ '/echo': echo, '/never': never });
    const socket = await open();
    socket.write(`${request}hello`);
    const { status: given, text } = await answered(socket);
    expect(given).toBe(status);
    expect(text).toContain(
      `Content-Type: ${status === 200 ? 'application/json' : 'text/plain; charset=utf-8'}\r\n`,
    );
    if (status === 200) expect(text).toContain('\r\n\r\nhello');
    if (status === 404) expect(text).toContain('there is /echo, /never');
    if (status === 405) expect(text).toContain('use POST');
  });

  it('counts bytes, not characters', async () => {
    const { open } = await listeningWebhook({ '/echo': echo });
    const socket = await open();
    socket.write(`${head('/echo', JSON_TYPE, 'content-length: 2')}é`);
    expect((await answered(socket)).text).toContain('Content-Length: 2\r\n');
  });

  it('is followed by another on the same connection', async () => {
    const { open } = await listeningWebhook({ '/echo': echo });
    const socket = await open();
    for (const word of ['one', 'two']) {
      socket.write(`${head('/echo', JSON_TYPE, 'content-length: 3')}${word}`);
      const { text } = await answered(socket);
      expect(text).toContain(`\r\n\r\n${word}`);
      expect(text).not.toContain('Connection: close');
    }
  });

  it('to what is too large ends the connection, announced or not', async () => {
    const { open } = await listeningWebhook({ '/echo': echo });
    const announced = await open();
    announced.write(head('/echo', JSON_TYPE, `content-length: ${4 * 2 ** 20 + 1}`));
    const chunked = await open();
    chunked.on('error', () => undefined);
    chunked.write(
      `${head('/echo', JSON_TYPE, 'transfer-encoding: chunked')}400001\r\n${'x'.repeat(4 * 2 ** 20 + 1)}`,
    );
    for (const socket of [announced, chunked]) {
      const { status, text } = await answered(socket);
      expect([status, text.includes('Connection: close')]).toEqual([413, true]);
      await closed(socket.resume());
    }
  });
});

describe('a connection ends', () => {
  it('with a second review before the first is answered', async () => {
    const { open } = await listeningWebhook({ '/never': never });
    const socket = await open();
    const review = `${head('/never', JSON_TYPE, 'content-length: 2')}{}`;
    socket.write(review + review);
    await closed(socket.resume());
  });

  it('after three seconds without the rest of its review', async () => {
    const { open, clock, lines } = await listeningWebhook({ '/echo': echo });
    const socket = await open();
    socket.write(`${head('/echo', JSON_TYPE, 'content-length: 5')}hell`);
    await until(() => clock.pendingTimers >= 2);
    await clock.advance(2999);
    expect(lines.join()).not.toContain('no whole review');
    await clock.advance(1);
    await closed(socket.resume());
    await logged(lines, 'no whole review in 3000 ms');
  });

  it('ten seconds after a review came, answered or not', async () => {
    const { open, clock } = await listeningWebhook({ '/never': never });
    const socket = await open();
    socket.write(`${head('/never', JSON_TYPE, 'content-length: 2')}{}`);
    await until(() => clock.pendingTimers >= 1);
    await clock.advance(9999);
    expect(socket.closed).toBe(false);
    await clock.advance(1);
    await closed(socket.resume());
  });

  it('when its webhook fails, and that is logged', async () => {
    const { open, lines } = await listeningWebhook({ '/fails': () => Promise.reject(new Error('a bug')) });
    const socket = await open();
    socket.write(`${head('/fails', JSON_TYPE, 'content-length: 2')}{}`);
    await closed(socket.resume());
    expect(lines.join()).toContain('a bug');
  });

  it('if there are 256 others: the one that was idle longest, and it is counted', async () => {
    const { port, dropped } = await listeningWebhook({ '/echo': echo });
    const sockets: Socket[] = [];
    for (let count = 0; count < 257; count++) {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
      sockets.push(socket);
    }
    await closed(sockets[0] as Socket);
    expect(sockets.filter((socket) => socket.closed)).toHaveLength(1);
    expect(dropped).toContain('displaced');
  });
});

it('a caller that leaves before its review is whole is logged, and makes room', async () => {
  const { open, lines, clock } = await listeningWebhook({ '/echo': echo });
  const socket = await open();
  socket.write(`${head('/echo', JSON_TYPE, 'content-length: 5')}hell`);
  await until(() => clock.pendingTimers >= 2);
  socket.destroy();
  await logged(lines, 'went away');
  expect(clock.pendingTimers).toBe(0);
});

it('a handshake that fails is counted and logged', async () => {
  const { port, dropped, lines } = await listeningWebhook({ '/echo': echo });
  const socket = connectTls({
    port,
    host: '127.0.0.1',
    maxVersion: 'TLSv1.1',
    ciphers: 'ALL@SECLEVEL=0',
    rejectUnauthorized: false,
  });
  await closed(socket);
  await logged(lines, 'TLS handshake failed');
  expect(dropped).toEqual(['handshake']);
});

describe('a caller that does not trust the certificate', () => {
  /** Breaks off its handshake by a fatal alert. */
  async function rejects(port: number, maxVersion: 'TLSv1.2' | 'TLSv1.3', alert: number): Promise<void> {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(await helloOf({ servername: 'hook', maxVersion }));
    await once(socket, 'data');
    socket.write(Buffer.from([21, 3, 3, 0, 2, 2, alert]));
    await closed(socket);
  }

  it.each([
    // As Go says it, API servers too, whatever is wrong.
    ['bad certificate', 42, 'TLSv1.2'],
    ['bad certificate', 42, 'TLSv1.3'],
    ['unknown ca', 48, 'TLSv1.3'],
  ] as const)('is counted by itself, and warned of: %s, by %i over %s', async (alert, code, version) => {
    const { port, dropped, lines } = await listeningWebhook({ '/echo': echo });
    await rejects(port, version, code);
    await logged(lines, 'does not trust');
    expect(dropped).toEqual(['untrusted']);
    const warning = JSON.parse(lines.find((line) => line.includes('does not trust')) ?? '');
    expect(warning).toMatchObject({ level: 'warn', alert, address: '127.0.0.1', names: 'DNS:hook' });
    expect(warning.issuer).toMatch(/^CN=/);
    expect(warning.msg).toMatch(/caBundle .* \(issuer\), and its names with SERVICE\.NAMESPACE\.svc/);
  });

  it('is warned of at most once a minute, and counted each time', async () => {
    const { port, dropped, lines, clock } = await listeningWebhook({ '/echo': echo });
    const warnings = (): number => lines.filter((line) => line.includes('does not trust')).length;
    for (let count = 0; count < 5; count++) await rejects(port, 'TLSv1.2', 42);
    await until(() => dropped.length === 5);
    expect(warnings()).toBe(1);
    await clock.advance(59_000);
    await rejects(port, 'TLSv1.2', 42);
    await until(() => dropped.length === 6);
    expect(warnings()).toBe(1);
    await clock.advance(1000);
    await rejects(port, 'TLSv1.2', 42);
    await until(() => dropped.length === 7);
    expect(warnings()).toBe(2);
  });
});

it('a listener that cannot listen no longer follows its certificates', async () => {
  const first = await listeningWebhook({});
  const { webhooks, certificates, metrics, clock, log, port, stopped } = first;
  const taken = { webhooks, certificates, metrics, clock, log, listen: { host: '127.0.0.1', port } };
  await expect(startWebhookListener(taken)).rejects.toMatchObject({ code: 'configuration' });
  expect(stopped).toHaveBeenCalledTimes(1);
});
