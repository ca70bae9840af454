/** Callers that hold up, cut off or send too much: each costs little, and the others are served meanwhile. */

import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { CA, formOf, runBroker, startWorld } from './running-broker.ts';

async function start() {
  const world = await startWorld();
  const running = await runBroker(world);
  const token = world.cluster.token(world.cluster.pod('shop', 'web'));
  async function open(allowHalfOpen = false): Promise<TLSSocket> {
    const options: ConnectionOptions & { allowHalfOpen: boolean } = {
      host: '127.0.0.1',
      port: running.port,
      ca: CA,
      servername: 'broker.token-sidecar.svc',
      allowHalfOpen,
    };
    const socket = connect(options);
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined);
    await new Promise<void>((resolve) => socket.once('secureConnect', resolve));
    return socket;
  }
  return { ...running, world, token, open };
}

function head(length: number | string, more = ''): string {
  const framing = typeof length === 'number' ? `Content-Length: ${length}` : length;
  return `POST /token/payments/payments HTTP/1.1\r\nHost: broker\r\nContent-Type: application/x-www-form-urlencoded\r\n${framing}\r\n${more}\r\n`;
}

async function allOf(socket: TLSSocket): Promise<string> {
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text;
}

it('a body that is too large, announced or not, is refused without reading it whole', async () => {
  const { open, askAs, world } = await start();
  const announced = await open();
  announced.write(head(10_000_000));
  expect(await allOf(announced)).toMatch(/^HTTP\/1\.1 413 [\s\S]*Connection: close/);

  const chunked = await open();
  chunked.write(head('Transfer-Encoding: chunked'));
  chunked.write(`8000\r\n${'a'.repeat(0x8000)}\r\n`);
  expect(await allOf(chunked)).toMatch(/^HTTP\/1\.1 413 /);
  expect((await askAs(world.cluster.pod('shop', 'other'))).status).toBe(200);
});

it('Expect: 100-continue gets no 100 for a body that would be refused', async () => {
  const { open } = await start();
  const socket = await open();
  socket.write(head(100, 'Expect: 100-continue\r\nAuthorization: Basic eDp5\r\n'));
  expect(await allOf(socket)).toMatch(/^HTTP\/1\.1 400 /);
});

it('a caller that half-closes after its request is answered', async () => {
  const { open, token } = await start();
  const socket = await open(true);
  const body = formOf(token);
  socket.end(head(Buffer.byteLength(body)) + body);
  expect(await allOf(socket)).toMatch(/^HTTP\/1\.1 200 [\s\S]*token-1/);
});

it('connections with ambiguous framing or too much pipelining are closed', async () => {
  const { open, token } = await start();
  const body = formOf(token);
  const both = await open();
  both.write(head(`Content-Length: ${Buffer.byteLength(body)}\r\nTransfer-Encoding: chunked`));
  expect(await allOf(both)).toMatch(/^HTTP\/1\.1 400 /);

  const pipelined = await open();
  const request = head(Buffer.byteLength(body)) + body;
  pipelined.write(request + request + request);
  expect((await allOf(pipelined)).split('HTTP/1.1 200').length).toBeLessThan(3);
});

it('callers that leave amid a head, a body or an answer do no harm', async () => {
  const { open, token, askAs, world, probe } = await start();
  const body = formOf(token);
  const request = head(Buffer.byteLength(body)) + body;
  for (const part of [request.slice(0, 20), request.slice(0, -10), request]) {
    const socket = await open();
    await new Promise<void>((resolve) => void socket.write(part, () => resolve()));
    socket.destroy();
  }
  expect((await askAs(world.cluster.pod('shop', 'other'))).status).toBe(200);
  while (!(await probe('/metrics')).text.includes('token_sidecar_broker_requests_in_flight 0'));
});

it('clear-text HTTP is refused, and failures before a request are counted', async () => {
  const { port, probe } = await start();
  const error = await fetch(`http://127.0.0.1:${port}/token/payments/payments`).catch((e: Error) => e);
  expect(error).toBeInstanceOf(Error);
  while (!(await probe('/metrics')).text.includes('connections_dropped_total{reason="handshake"} 1'));
});
