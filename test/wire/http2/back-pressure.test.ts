import type { Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { until } from '../../support/until.ts';
import { type BothEnds, kernelQueues, stillQueues } from '../kernel-queues.ts';
import { CHUNKED, chunk, message, ok } from '../messages.ts';
import { type RawUpstream, startUpstream } from '../raw-upstream.ts';
import { type Sidecar, startSidecar } from '../sidecar.ts';
import { type Frame, Setting, Type, windowUpdate } from './frames.ts';
import { type ClientOptions, connectHttp2, type RawHttp2Client } from './raw-http2-client.ts';

/** Nothing here is about time, and how long so many bytes take is the machine's affair. */
const PATIENT = { connectMs: 600_000, responseMs: 600_000, idleMs: 600_000 };
vi.setConfig({ testTimeout: 120_000 });

const MEGABYTE = 1024 * 1024;

/** More than the kernel takes on two loopback hops for a reader that does not read. */
const TOTAL = 32 * MEGABYTE;

/** What the sidecar itself may hold of it. */
const HELD = MEGABYTE;

/** Whose answers are more than the kernel takes on one hop. */
const MAX_UNHEARD = 600;

const BLOCK = Buffer.alloc(64 * 1024, 'x');

/** In how many turns of the event loop a sidecar that reads has read a block. */
const TURNS = 6;

function startPatient(upstream: RawUpstream): Promise<Sidecar> {
  return startSidecar({
    upstream,
    route: { timeouts: PATIENT },
    limits: { headerTimeoutMs: 600_000, keepAliveTimeoutMs: 600_000 },
  });
}

/** Writes blocks, TOTAL bytes, as fast as the peer takes them; says how many it got rid of. */
function pour(socket: Socket): { accepted(): number } {
  let accepted = 0;
  const next = (): void => {
    socket.write(BLOCK, (error) => {
      if (error) return;
      accepted += BLOCK.length;
      if (accepted < TOTAL) next();
    });
  };
  next();
  return { accepted: () => accepted };
}

/**
 * Resolves when the sidecar has stopped reading from `socket` though bytes lie before it.
 * @param progress of whoever shares this event loop with it.
 * @returns how much the kernel holds of what was sent to the sidecar there.
 */
async function unread(socket: Socket, progress: () => unknown): Promise<number> {
  for (;;) {
    const [ends] = await stillQueues([socket], progress, TURNS);
    if (ends !== undefined && ends.peer.unread > 0) return ends.own.unsent + ends.peer.unread;
  }
}

async function downloading(options: ClientOptions) {
  const upstream = await startUpstream((arrived) => {
    if (arrived.head.target === '/other') arrived.answer(ok('y'.repeat(100_000)));
  });
  const sidecar = await startPatient(upstream);
  const client = await connectHttp2(sidecar, options);
  const stream = client.get('/');
  const arrived = await upstream.request();
  arrived.answer(message('HTTP/1.1 200 OK', [`Content-Length: ${TOTAL}`]));
  const download = pour(arrived.connection.socket);
  return { upstream, sidecar, client, stream, arrived, download };
}

describe('an HTTP/2 answer', () => {
  it('is held back by the window of its stream, and other streams are not', async () => {
    const { client, stream, arrived, download } = await downloading({ updatesWindows: false });
    const { socket } = arrived.connection;
    await client.until(() => client.dataBytes === 65_535);
    const queued = await unread(socket, () => [download.accepted(), client.dataBytes]);
    expect(client.dataBytes).toBe(65_535);
    expect(download.accepted() - queued - client.dataBytes).toBeLessThan(HELD);

    client.send(windowUpdate(0, 10 * MEGABYTE));
    const other = client.get('/other');
    await client.until(() => client.soFar(other).body.length === 65_535);
    client.send(windowUpdate(other, MEGABYTE));
    expect((await client.answer(other)).body).toBe('y'.repeat(100_000));

    client.send(windowUpdate(stream, TOTAL), windowUpdate(0, TOTAL));
    await client.until(() => client.soFar(stream).ended);
    expect(client.soFar(stream).body.length).toBe(TOTAL);
  });

  it('is held back at the upstream when the app does not read its connection', async () => {
    const window = [Setting.INITIAL_WINDOW_SIZE, 2 ** 30] as const;
    const { client, stream, arrived, download } = await downloading({
      settings: [window],
      updatesWindows: false,
      keepsBodies: false,
    });
    client.send(windowUpdate(0, 2 ** 30));
    await client.until(() => client.dataBytes > 0);
    client.socket.pause();
    const { socket } = arrived.connection;
    const queued = await unread(socket, () => [download.accepted(), client.dataBytes]);
    const [ends] = kernelQueues(client.socket) as [BothEnds];
    const received = client.dataBytes + ends.peer.unsent + ends.own.unread;
    expect(download.accepted() - queued - received).toBeLessThan(HELD);

    client.socket.resume();
    await client.until(() => client.soFar(stream).ended);
    expect(client.dataBytes).toBe(TOTAL);
  });

  it('shares the connection window with others frame by frame', async () => {
    const upstream = await startUpstream();
    const sidecar = await startPatient(upstream);
    const client = await connectHttp2(sidecar, {
      settings: [[Setting.INITIAL_WINDOW_SIZE, 10 * MEGABYTE]],
      updatesWindows: false,
    });
    const streams = [client.get('/1'), client.get('/2'), client.get('/3')];
    for (const _ of streams) {
      const arrived = await upstream.request();
      arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('x'.repeat(3 * 65_536))));
    }
    await client.until(() => client.dataBytes === 65_535);
    await until(() => streams.every((stream) => client.soFar(stream).head !== undefined));

    client.send(windowUpdate(0, 12 * 16_384));
    await client.until(() => client.dataBytes === 65_535 + 12 * 16_384);

    const later = client.frames.filter(({ type }) => type === Type.DATA).slice(-12);
    for (const stream of streams) {
      const count = later.filter(({ streamId }) => streamId === stream).length;
      expect(count).toBeGreaterThanOrEqual(2);
    }
  });
});

/** Sends as much of a body as the windows allow, TOTAL bytes at most. */
class Upload {
  sent = 0;
  readonly #client: RawHttp2Client;
  readonly #stream: number;
  #ofStream = 65_536;
  #ofConnection = 65_535;
  /** Frames that have been counted. */
  #heeded = 0;

  constructor(client: RawHttp2Client, stream: number) {
    this.#client = client;
    this.#stream = stream;
  }

  /** What the sidecar has allowed in all. */
  get allowed(): number {
    const { frames } = this.#client;
    for (; this.#heeded < frames.length; this.#heeded++) {
      const { type, streamId, payload } = frames[this.#heeded] as Frame;
      if (type !== Type.WINDOW_UPDATE) continue;
      if (streamId === 0) this.#ofConnection += payload.readUInt32BE(0);
      if (streamId === this.#stream) this.#ofStream += payload.readUInt32BE(0);
    }
    return Math.min(this.#ofStream, this.#ofConnection, TOTAL);
  }

  send(): void {
    while (this.sent < this.allowed) {
      const bytes = Math.min(16_384, this.allowed - this.sent);
      this.#client.data(this.#stream, BLOCK.subarray(0, bytes), this.sent + bytes === TOTAL);
      this.sent += bytes;
    }
  }
}

describe('an HTTP/2 request body', () => {
  it('is held back by an upstream that does not read, and other streams are not', async () => {
    const upstream = await startUpstream((arrived) => {
      if (arrived.head.target === '/other') {
        void arrived.body().then(({ text }) => arrived.answer(ok(String(text.length))));
        return;
      }
      arrived.connection.socket.pause();
      arrived.connection.received.discard();
    });
    const sidecar = await startPatient(upstream);
    const client = await connectHttp2(sidecar);
    await client.frame(Type.SETTINGS);
    const stream = client.post('/', 'content-length', String(TOTAL));
    const arrived = await upstream.request();
    const upload = new Upload(client, stream);

    // As long as the kernel takes it, it is given back; then no more is allowed.
    const sockets = [arrived.connection.socket, client.socket];
    const [up, down] = (await stillQueues(
      sockets,
      () => {
        upload.send();
        return upload.sent;
      },
      TURNS,
    )) as [BothEnds, BothEnds];
    expect(upload.sent).toBeLessThan(TOTAL);
    const inKernel = up.own.unread + up.peer.unsent + down.own.unsent + down.peer.unread;
    expect(upload.sent - inKernel - arrived.connection.received.count).toBeLessThan(HELD);

    const other = client.post('/other');
    client.data(other, BLOCK.subarray(0, 16_384), true);
    expect((await client.answer(other)).body).toBe('16384');

    arrived.connection.socket.resume();
    await until(() => {
      upload.send();
      return upload.sent === TOTAL;
    });
    await arrived.connection.received.reached(TOTAL);
    arrived.answer(ok('all of it'));
    expect((await client.answer(stream)).body).toBe('all of it');
  });
});

describe('an HTTP/2 app that sends requests and does not read', () => {
  it('is not read from any more, and gets all its answers once it reads', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok('', `X: ${'y'.repeat(60_000)}`)));
    const sidecar = await startPatient(upstream);
    const client = await connectHttp2(sidecar, { answers: false });
    await client.fence();
    client.socket.pause();
    const streams: number[] = [];
    // No more at once than may be open: those before have been answered, as far as the sidecar is concerned.
    for (let isHeard = true; isHeard; ) {
      for (let index = 0; index < 50; index++) streams.push(client.get('/'));
      await stillQueues([client.socket], () => upstream.requests.length, TURNS);
      isHeard = upstream.requests.length === streams.length;
      if (streams.length > MAX_UNHEARD) throw new Error('nothing held the app back');
    }
    client.socket.resume();
    for (const stream of streams) {
      const got = await client.answer(stream);
      expect([got.status, got.reset]).toEqual([200, undefined]);
    }
  });
});
