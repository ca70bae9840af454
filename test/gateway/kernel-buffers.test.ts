import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openKernelBuffers } from '../../src/gateway/kernel-buffers.ts';
import { until } from '../support/until.ts';

it.each([
  ['as they say now', 'anon 1\nsock 4096000\nshmem 7\n', 4096000],
  ['as 0 where they name no sockets', 'cache 1\nrss 5\n', 0],
])(
  'what the control group is charged for sockets is read from its statistics, %s',
  async (_, text, charged) => {
    const directory = await mkdtemp(join(tmpdir(), 'statistics-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, 'memory.stat');
    await writeFile(path, 'sock 7\n');
    const kernel = openKernelBuffers(path);
    onTestFinished(kernel.close);
    expect(kernel.charged()).toBe(7);
    await writeFile(path, text);
    expect(kernel.charged()).toBe(charged);
  },
);

it('without kernel statistics, nothing is charged for sockets', () => {
  const kernel = openKernelBuffers('/nowhere/memory.stat');
  onTestFinished(kernel.close);
  expect(kernel.charged()).toBe(0);
});

it.each(['127.0.0.1', '::1', '::'])(
  'what the peer has not taken, and what was not read, counts for who has the socket, at %s',
  async (host) => {
    const server = createServer({ pauseOnConnect: true }).listen(0, host);
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const accepted = once(server, 'connection');
    const sender = connect({ port, host: host === '::' ? '127.0.0.1' : host });
    const [receiver] = (await accepted) as [Socket];
    const quiet = connect({ port, host: host === '::' ? '127.0.0.1' : host });
    await once(quiet, 'connect');
    onTestFinished(() => {
      for (const socket of [sender, receiver, quiet]) socket.destroy();
    });
    sender.on('error', () => {}).write(Buffer.alloc(20_000));
    const kernel = openKernelBuffers();
    onTestFinished(kernel.close);
    const queued = () =>
      kernel.queued(
        new Map([
          ['receiver', [receiver]],
          ['both', [sender, receiver]],
          ['quiet', [quiet]],
        ]),
      );
    await until(() => queued()?.get('receiver') === 20_000);
    expect(queued()).toEqual(
      new Map([
        ['receiver', 20_000],
        ['both', 20_000],
        ['quiet', 0],
      ]),
    );
    receiver.destroy();
    await until(() => queued()?.get('receiver') === 0);
  },
);
