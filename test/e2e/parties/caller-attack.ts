/**
 * What one caller does to the injector, the broker or the issuer, as a process of its own: `node caller-attack.ts NAME`, with
 * the target on standard input. Says `begun` once it is in full swing, and goes on until it is killed.
 */

import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

/** How a program is reached, and what costs it most. */
export interface Target {
  readonly port: number;
  /** Absent where it speaks plain HTTP. */
  readonly tls?: { readonly ca: string; readonly servername: string };
  /** A request that is answered 200. */
  readonly request: string;
  /** Of callers beside the one that attacks. */
  readonly own?: readonly string[];
  /** The largest that it takes. */
  readonly bodyBytes: number;
  /** More than it lets stand. */
  readonly connections: number;
  /** Whole requests that cost it work, and are refused or large. */
  readonly costly: readonly string[];
}

/** Made at a time. */
const AT_ONCE = 50;
/** Before it comes again, so that it is not its handshakes that are measured. */
const AGAIN_MS = 1000;
/** Each with its request under way. */
const ASKING = 100;
/** Fewer than any of them lets stand. */
const ASKING_TOGETHER = 250;
/** Of those that are begun and left, at a time; all wait to be accepted. */
const LEAVING = 1500;
const LEAVING_BESIDE = 500;
/** Enough of them fill the memory of who keeps what is unread. */
const NOT_READING = 300;

/** Of bodies whose octets are a chunk each. */
const FEW = 60;
const MAX_OCTETS = 2 ** 16;

type Attack = (target: Target) => Promise<void>;

export const ATTACKS = {
  unfinishedBodies: (target) =>
    everMore(target, target.connections, async (socket) => {
      socket.write(`${headOf(target)}${'a'.repeat(target.bodyBytes - 1)}`);
    }),
  bodiesByOctet: (target) =>
    everMore(target, FEW, async (socket) => {
      const head = headOf(target).replace(/content-length: \d+/, 'transfer-encoding: chunked');
      socket.write(head + '1\r\na\r\n'.repeat(Math.min(target.bodyBytes, MAX_OCTETS) - 1));
    }),
  unreadAnswers: (target) =>
    everMore(target, NOT_READING, async (socket) => {
      socket.pause();
      const again = setInterval(() => {
        socket.write(target.request);
        if (socket.destroyed) clearInterval(again);
      }, 20);
    }),
  costlyRequests: (target) => asking(target, target.costly, ASKING),
  unfinishedHeads: (target) =>
    everMore(target, target.connections, async (socket) => {
      socket.write(headOf(target).slice(0, -2));
    }),
  leftConnections: (target) => leaving(target, LEAVING),
  /** As many connections as ask all the time without displacing each other, and others that are begun and left. */
  fullRate: async (target) => {
    await asking(target, [target.request], ASKING_TOGETHER);
    await leaving(target, LEAVING_BESIDE);
  },
} satisfies Record<string, Attack>;

/** From an address of its own. Resolves once it is made, or refused. */
async function open({ port, tls }: Target): Promise<Socket> {
  const to = { host: '127.0.0.1', port, localAddress: '127.0.0.2' };
  // TLS passes the local address on to TCP, though its type does not say so.
  const socket: Socket =
    tls === undefined ? connectTcp(to) : connectTls({ ...to, ...tls } as ConnectionOptions);
  socket.on('error', () => {});
  const made = once(socket, tls === undefined ? 'connect' : 'secureConnect').catch(() => {});
  await Promise.race([made, goneOf(socket)]);
  return socket;
}

function goneOf(socket: Socket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

/** Connections without end: what is closed is made again. Resolves when there are so many. */
async function everMore(target: Target, most: number, act: (socket: Socket) => Promise<void>): Promise<void> {
  const begun = Promise.withResolvers<void>();
  let made = 0;
  let standing = 0;
  const make = async (): Promise<void> => {
    for (;;) {
      const socket = await open(target);
      standing++;
      const gone = goneOf(socket).then(() => void standing--);
      await act(socket);
      if (++made >= most) begun.resolve();
      if (standing < most) continue;
      await gone;
      await pause(AGAIN_MS);
    }
  };
  for (let maker = 0; maker < AT_ONCE; maker++) void make();
  await begun.promise;
}

/** One request after the other, as fast as they are answered. */
async function asking(target: Target, requests: readonly string[], askers: number): Promise<void> {
  const begun = Promise.withResolvers<void>();
  let asked = 0;
  const ask = async (): Promise<void> => {
    for (;;) {
      const socket = await open(target);
      const gone = goneOf(socket).then(() => 'gone' as const);
      for (;;) {
        socket.write(requests[asked++ % requests.length] as string);
        if (asked >= askers) begun.resolve();
        const next = await Promise.race([once(socket, 'data').catch(() => 'gone' as const), gone]);
        if (next === 'gone') break;
      }
    }
  };
  for (let asker = 0; asker < askers; asker++) void ask();
  await begun.promise;
}

/** Connections without end that are left at the first byte of an answer: of a handshake, or to what is none of HTTP. */
async function leaving(target: Target, atOnce: number): Promise<void> {
  const begun = Promise.withResolvers<void>();
  const hello = await firstMessage(target);
  let made = 0;
  const leave = async (): Promise<void> => {
    for (;;) {
      const socket = connectTcp({ host: '127.0.0.1', port: target.port, localAddress: '127.0.0.2' });
      socket.on('error', () => {});
      const gone = goneOf(socket);
      socket.write(hello);
      await Promise.race([once(socket, 'data').catch(() => {}), gone]);
      // Without a trace: closed ones would soon take all ports.
      socket.resetAndDestroy();
      if (++made >= atOnce) begun.resolve();
      await gone;
    }
  };
  for (let maker = 0; maker < atOnce; maker++) void leave();
  await begun.promise;
}

async function firstMessage({ tls }: Target): Promise<Buffer> {
  if (tls === undefined) return Buffer.from('nothing\r\n\r\n');
  const message = Promise.withResolvers<Buffer>();
  const wire = new Duplex({
    read: () => {},
    write(bytes: Buffer, _encoding, done) {
      message.resolve(bytes);
      done();
    },
  });
  connectTls({ ...tls, socket: wire }).on('error', () => {});
  return await message.promise;
}

function headOf({ request, bodyBytes }: Target): string {
  const head = request.slice(0, request.indexOf('\r\n\r\n') + 4);
  return head.replace(/content-length: \d+/, `content-length: ${bodyBytes}`);
}

if (import.meta.main) {
  const name = process.argv[2] ?? '';
  const attack = (ATTACKS as Readonly<Record<string, Attack>>)[name];
  if (attack === undefined) throw new Error(`no attack is named ${name}`);
  await attack(JSON.parse(await text(process.stdin)) as Target);
  process.stdout.write('begun\n');
  setInterval(() => {}, 1000);
}
