import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { chargedForSockets, queuedInKernel } from '../../src/gateway/kernel-buffers.ts';
import { until } from '../support/until.ts';

it('what the control group is charged for sockets is read from its statistics, and is 0 where they do not say', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'statistics-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, 'memory.stat');
  expect(chargedForSockets(path)).toBe(0);
  await writeFile(path, 'anon 1\nsock 4096000\nshmem 7\n');
  expect(chargedForSockets(path)).toBe(4096000);
  await writeFile(path, 'cache 1\nrss 5\n');
  expect(chargedForSockets(path)).toBe(0);
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
    const queued = () =>
      queuedInKernel(
        new Map([
          ['receiver', [receiver]],
          ['both', [sender, receiver]],
          ['quiet', [quiet]],
        ]),
      );
    await until(() => queued().get('receiver') === 20_000);
    expect(queued()).toEqual(
      new Map([
        ['receiver', 20_000],
        ['both', 20_000],
        ['quiet', 0],
      ]),
    );
    receiver.destroy();
    await until(() => queued().get('receiver') === 0);
  },
);
