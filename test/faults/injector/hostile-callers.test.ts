/** What any pod of the cluster can do to the webhooks: it can reach them, and nothing says who it is. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { ASKING } from '../../injector/defaults.ts';
import { reviewOf } from '../../injector/review.ts';
import { apiServer, HOST, mountCertificate } from '../../integration/injector/running-injector.ts';
import { MAIN, SURROUNDINGS } from '../../support/run-command.ts';
import { readShippedNode } from '../../support/shipped-node.ts';
import { volume } from '../../support/volume.ts';

const POD = { metadata: { annotations: ASKING }, spec: { containers: [{ name: 'app' }] } };
const MIB = 2 ** 20;
/** The chart's limit is 192Mi. */
const MAX_MEMORY = 176 * MIB;
/** Each with four megabytes, which together are more than the limit. */
const CALLERS = volume(50, 100);
/** Of one address, a hundred at a time. */
const CROWD = volume(500, 1000);

/** As a process of its own, run as the image runs it. */
async function start() {
  const mounted = await mountCertificate();
  const ca = await mounted.issue();
  const args = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0', '--drain-delay', '0s'];
  const { flags, env } = await readShippedNode();
  const child = spawn(process.execPath, [...flags, MAIN, 'injector', ...args, ...mounted.settings], {
    env: { ...SURROUNDINGS, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const { promise, resolve } = Promise.withResolvers<Readonly<Record<string, unknown>>>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const said = JSON.parse(line) as Readonly<Record<string, unknown>>;
    if (said['msg'] === 'listening') resolve(said);
  });
  const said = await promise;
  const port = Number(String(said['listen']).split(':')[1]);
  return {
    port,
    ca,
    client: apiServer(port, ca),
    async metric(name: string): Promise<number> {
      const text = await (await fetch(`http://${said['admin']}/metrics`)).text();
      const line = text.split('\n').find((each) => each.startsWith(`${name} `));
      return Number(line?.split(' ')[1]);
    },
    async peakMemory(): Promise<number> {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
    },
    /** From an address of its own, so that callers can be told apart. */
    async open(localAddress = '127.0.0.1'): Promise<TLSSocket> {
      // TLS passes the local address on to TCP, though its type does not say so.
      const options: ConnectionOptions & { localAddress: string } = {
        host: '127.0.0.1',
        port,
        ca,
        servername: HOST,
        localAddress,
      };
      const socket = connect(options);
      socket.on('error', () => undefined);
      onTestFinished(() => void socket.destroy());
      await Promise.race([new Promise((resolve) => socket.once('secureConnect', resolve)), closed(socket)]);
      return socket;
    },
  };
}

/** However it closes: `once` would reject when it is by a reset. */
function closed(socket: Socket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

/** The head of a review, which announces the body. */
function head(bytes: number): string {
  return `POST /mutate HTTP/1.1\r\nhost: ${HOST}\r\ncontent-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n`;
}

it('many callers with four megabytes each stay within the memory limit, and an API server is answered', async () => {
  const injector = await start();
  const note = 'x'.repeat(4 * MIB - 2048);
  const body = reviewOf({ ...POD, metadata: { annotations: { ...ASKING, note } } });
  const callers = await Promise.all(
    Array.from({ length: CALLERS }, (_, index) => injector.open(`127.0.1.${1 + (index % 10)}`)),
  );
  const over = callers.map(async (socket) => {
    const ended = closed(socket);
    // All but the last byte: whoever takes it in keeps it.
    socket.write(head(Buffer.byteLength(body)) + body.slice(0, -1));
    socket.resume();
    await ended;
  });
  for (let call = 0; call < 5; call++) {
    expect(await injector.client.call('/mutate', reviewOf(POD))).toMatchObject({ status: 200 });
  }
  for (const socket of callers) socket.destroy();
  await Promise.all(over);
  const peak = await injector.peakMemory();
  expect(peak).toBeLessThan(MAX_MEMORY);
  expect(await injector.client.call('/mutate', reviewOf(POD))).toMatchObject({ status: 200 });
}, 120_000);

it('whole reviews of four megabytes, many at a time, stay within the memory limit', async () => {
  const injector = await start();
  const values = Array.from({ length: 60_000 }, () => ({}));
  const pod = { metadata: { annotations: { ...ASKING, note: 'x'.repeat(3.5 * MIB) } }, spec: { values } };
  const body = reviewOf({ ...pod, spec: { ...pod.spec, ...POD.spec } });
  const statuses = await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      const socket = await injector.open();
      socket.write(head(Buffer.byteLength(body)) + body);
      const answer = new Promise((resolve) => socket.once('data', resolve));
      const text = String(await Promise.race([answer, closed(socket)]));
      socket.destroy();
      return text.slice(9, 12);
    }),
  );
  expect(statuses).toContain('200');
  const peak = await injector.peakMemory();
  expect(peak).toBeLessThan(MAX_MEMORY);
}, 120_000);

it('hundreds of connections of one address stay within the memory limit, and those of an API server stay open', async () => {
  const injector = await start();
  // Another address than the callers' below.
  const before = await injector.client.call('/mutate', reviewOf(POD));
  const { promise, resolve } = Promise.withResolvers<void>();
  // All but those that may stay beside the API server's.
  let left = CROWD - 255;
  for (let batch = 0; batch < CROWD / 100; batch++) {
    const callers = await Promise.all(Array.from({ length: 100 }, () => injector.open('127.0.2.1')));
    for (const socket of callers) {
      closed(socket.resume()).then(() => --left === 0 && resolve());
      // Whoever has asked something may stay for longer than all of this takes.
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    }
  }
  await promise;
  // All at once and without TLS: on a slow machine the others may have run out of time before they were too many.
  const address = { host: '127.0.0.1', port: injector.port, localAddress: '127.0.2.1' };
  const burst = Array.from({ length: 300 }, () => createConnection(address).resume());
  onTestFinished(() => void burst.map((socket) => socket.destroy()));
  await Promise.race(burst.map((socket) => closed(socket.on('error', () => undefined))));
  const displaced = 'token_sidecar_injector_connections_dropped_total{reason="displaced"}';
  expect(await injector.metric(displaced)).toBeGreaterThan(0);
  expect(await injector.client.call('/mutate', reviewOf(POD))).toMatchObject({
    status: 200,
    localPort: before.localPort,
  });
  expect(await injector.peakMemory()).toBeLessThan(MAX_MEMORY);
}, 120_000);

it('a caller that sends nothing, or half a review, is sent away within seconds', async () => {
  const injector = await start();
  const [silent, slow] = await Promise.all([injector.open(), injector.open()]);
  slow?.write(`${head(100)}{`);
  await Promise.all([silent, slow].map((socket) => closed((socket as TLSSocket).resume())));
});

it('a second review before the answer to the first ends the connection', async () => {
  const injector = await start();
  const socket = await injector.open();
  socket.resume();
  const body = reviewOf(POD);
  const review = head(Buffer.byteLength(body)) + body;
  socket.write(review + review);
  await closed(socket);
});
