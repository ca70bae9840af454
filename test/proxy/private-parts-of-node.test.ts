import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { acceptShared, sharesAcceptedReads } from '../../src/proxy/io/sockets.ts';
import { sawCloseNotify } from '../../src/proxy/upstream/close-notify.ts';
import { selfSigned } from '../wire/certificate.ts';

/** A connection whose handle is not where Node keeps it today. */
function withoutHandle(socket: Socket): Socket {
  const [near, far] = duplexPair();
  socket.pipe(far).pipe(socket);
  return near as Socket;
}

async function accepted(): Promise<{ app: Socket; socket: Socket }> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const app = connect({ port: (server.address() as AddressInfo).port, allowHalfOpen: true });
  const [socket] = (await accepting) as [Socket];
  onTestFinished(() => {
    app.destroy();
    socket.destroy();
    server.close();
  });
  return { app, socket };
}

const SOCKETS = [
  ['has its handle where it is today', (socket: Socket) => socket],
  ['keeps its handle elsewhere', withoutHandle],
] as const;

it('this version of Node keeps its read buffer where the sidecar looks for it', () => {
  expect(sharesAcceptedReads).toBe(true);
});

describe.each(SOCKETS)('an accepted connection on a Node that %s', (_, of) => {
  it('is read in order, stops while paused, and ends', async () => {
    const { app, socket } = await accepted();
    let text = '';
    let onTaken = (): void => {};
    const read = of(socket);
    acceptShared(read, (chunk) => {
      text += chunk.toString('latin1');
      onTaken();
    });
    onTestFinished(() => {
      read.destroy();
    });
    const taken = async (expected: string): Promise<void> => {
      while (text !== expected) await new Promise<void>((resolve) => (onTaken = resolve));
    };
    read.resume();
    app.write('one ');
    await taken('one ');
    read.pause();
    app.end('two');
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(text).toBe('one ');
    const ended = once(read, 'end');

    read.resume();

    await ended;
    expect(text).toBe('one two');
    const answered = once(app, 'data');
    read.write('answer');
    expect(String((await answered)[0])).toBe('answer');
  });
});

describe('the end of a TLS connection', () => {
  const certificate = selfSigned('127.0.0.1');

  /** What `look` says of a connection amid its end, which the peer has said, or not. */
  async function atTheEnd<Seen>(said: boolean, look: (socket: Socket) => Seen): Promise<Seen> {
    const tcp: Socket[] = [];
    const server = createTlsServer({ ...certificate, allowHalfOpen: true }, (peer) => {
      peer.on('error', () => {});
      if (said) peer.end();
      else peer.destroy();
    });
    server.on('connection', (socket) => tcp.push(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const options = { host: '127.0.0.1', port, ca: certificate.cert, allowHalfOpen: true };
    const socket = connectTls(options);
    onTestFinished(() => {
      socket.destroy();
      for (const each of tcp) each.destroy();
      server.close();
    });
    let seen: { look: Seen } | undefined;
    socket.on('end', () => {
      seen = { look: look(socket) };
    });
    await once(socket.resume(), 'end');
    if (seen === undefined) throw new Error('nothing was seen of the end');
    return seen.look;
  }

  it('is known to be by close_notify or cut', async () => {
    expect(await atTheEnd(true, sawCloseNotify)).toBe(true);
    expect(await atTheEnd(false, sawCloseNotify)).toBe(false);
  });

  it.each([
    ['no handle', undefined],
    ['a closed one', null],
    ['one without the connection beneath', {}],
    ['a connection beneath that is not read so', { _parent: {} }],
  ])('counts as close_notify on a Node whose sockets have %s', async (_, handle) => {
    const elsewhere = (socket: Socket): Socket => Object.create(socket, { _handle: { value: handle } });

    expect(await atTheEnd(false, (socket) => sawCloseNotify(elsewhere(socket)))).toBe(true);
  });
});
