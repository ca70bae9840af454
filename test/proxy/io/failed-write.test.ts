import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FailedWrite } from '../../../src/proxy/io/sockets.ts';
import { selfSigned } from '../../wire/certificate.ts';

/** Both ends of a connection, of which the near one reads nothing yet. */
async function connected(over: 'plain' | 'tls') {
  const certificate = selfSigned('127.0.0.1');
  const server =
    over === 'tls'
      ? createTlsServer({ ...certificate, allowHalfOpen: true })
      : createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const to = { port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true };
  const accepting = once(server, over === 'tls' ? 'secureConnection' : 'connection');
  const near = over === 'tls' ? connectTls({ ...to, ca: certificate.cert }) : connect(to);
  const made = once(near, over === 'tls' ? 'secureConnect' : 'connect');
  const [far] = (await accepting) as [Socket];
  await made;
  near.pause();
  far.on('error', () => {});
  const told: string[] = [];
  near.on('data', (data: Buffer) => told.push(data.toString()));
  near.on('error', () => told.push('failed'));
  onTestFinished(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  return { near, far, told };
}

/** `once` would fail for the error before it. */
async function closed(socket: Socket): Promise<void> {
  await new Promise<void>((resolve) => socket.once('close', () => resolve()));
}

/** Writes until the system refuses it. */
async function writeInVain(near: Socket, over: () => boolean): Promise<void> {
  while (!over()) {
    near.write('in vain');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe.each(['plain', 'tls'] as const)('a failed write over %s', (over) => {
  /** The far end has answered, and closed with bytes unread. */
  async function refused() {
    const { near, far, told } = await connected(over);
    const failed = new FailedWrite(near);
    near.write('upload');
    await once(far, 'data');
    far.pause();
    near.write('more of it');
    far.write('answer', () => far.destroy());
    await closed(far);
    await writeInVain(near, () => failed.happened);
    return { near, told };
  }

  it('is reported once after the received bytes have been read', async () => {
    const { near, told } = await refused();
    expect([told, near.destroyed]).toEqual([[], false]);

    near.resume();
    await closed(near);

    expect(told).toEqual(['answer', 'failed']);
  });

  it('is reported before other listeners hear of the end', async () => {
    const { near } = await refused();
    let errored: Error | null = null;
    near.on('end', () => {
      errored = near.errored;
    });

    near.resume();
    await closed(near);

    // Where reading fails, too, there is no end.
    expect(errored ?? near.errored).toBeInstanceOf(Error);
  });

  it('completes waiting writes when the socket is closed meanwhile', async () => {
    const { near } = await refused();
    const waiting = new Promise((resolve) => near.write('never', resolve));

    near.destroy();

    expect(await waiting).toBeInstanceOf(Error);
  });

  it('is reported at once when reading has ended', async () => {
    const { near, far, told } = await connected(over);
    const failed = new FailedWrite(near);
    near.resume();
    far.end('answer');
    await once(near, 'end');
    far.destroy();

    await writeInVain(near, () => near.destroyed);

    expect(failed.happened).toBe(true);
    expect(told).toEqual(['answer', 'failed']);
  });

  it('leaves successful writes unchanged', async () => {
    const { near, far } = await connected(over);
    new FailedWrite(near);
    let received = '';
    far.on('data', (data: Buffer) => {
      received += data.toString();
    });
    near.cork();
    near.write('in one ');
    near.write('piece, ');
    near.uncork();
    near.end('and alone');

    await once(far, 'end');

    expect(received).toBe('in one piece, and alone');
  });
});
