import type { Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { until } from '../support/until.ts';
import { type BothEnds, stillQueues } from './kernel-queues.ts';
import { get, message, ok, request } from './messages.ts';
import { type RawUpstream, startUpstream, type UpstreamConnection } from './raw-upstream.ts';
import { type Sidecar, startSidecar } from './sidecar.ts';

/** Nothing here is about time, and how long so many bytes take is the machine's affair. */
const PATIENT = { connectMs: 600_000, responseMs: 600_000, idleMs: 600_000 };
vi.setConfig({ testTimeout: 120_000 });

const MEGABYTE = 1024 * 1024;

/** More than the kernel takes on two loopback hops for a reader that does not read: at most 4 MB to send, less to receive. */
const TOTAL = 32 * MEGABYTE;

/** What the sidecar itself may hold of it: some blocks on their way, and not what somebody is slow to take. */
const HELD = MEGABYTE;

interface Pour {
  /** How much the sender got rid of. */
  accepted(): number;
  /** Resolves when it got rid of all. */
  readonly finished: Promise<void>;
  /** Begins no further block; resolves when it got rid of those that it began. */
  stop(): Promise<void>;
}

/** Writes blocks, TOTAL bytes or a little more, as fast as the peer takes them. */
function pour(socket: Socket, block = Buffer.alloc(64 * 1024, 'x')): Pour {
  let accepted = 0;
  let enough = TOTAL;
  const finished = new Promise<void>((resolve, reject) => {
    const next = (): void => {
      socket.write(block, (error) => {
        accepted += block.length;
        if (error) reject(error);
        else if (accepted >= enough) resolve();
        else next();
      });
    };
    next();
  });
  return {
    accepted: () => accepted,
    finished,
    stop() {
      enough = 0;
      return finished;
    },
  };
}

/** In how many turns of the event loop a sidecar that reads has read a block: it takes 16 KiB or more in each. */
const TURNS = 4;

/**
 * Resolves when what `from` sends is held back because `to` does not read, which stays so until it does. The signs are the
 * kernel's: on the way to `to` nothing moves, its window being closed; and bytes from `from` lie before the sidecar, which
 * shares this event loop, and are not read in turn after turn.
 * @param sent how much `from` got rid of.
 * @returns how much of it the sidecar holds itself: what lies in none of the kernel's queues.
 */
async function heldBack(from: Socket, to: Socket, sent: () => number): Promise<number> {
  for (;;) {
    const [up, down] = (await stillQueues([from, to], sent, TURNS)) as [BothEnds, BothEnds];
    if (sent() >= TOTAL) throw new Error('nothing held the sender back');
    if (up.peer.unread === 0 || !down.peer.peerIsFull) continue;
    return sent() - up.own.unsent - up.peer.unread - down.peer.unsent - down.own.unread;
  }
}

function startPatient(upstream: RawUpstream): Promise<Sidecar> {
  return startSidecar({
    upstream,
    route: { timeouts: PATIENT },
    limits: { headerTimeoutMs: 600_000, keepAliveTimeoutMs: 600_000 },
  });
}

describe('a slow reader applies back-pressure to a fast writer', () => {
  it('for an upload to an upstream that does not read', async () => {
    const upstream = await startUpstream((arrived) => {
      arrived.connection.socket.pause();
      arrived.connection.received.discard();
    });
    const sidecar = await startPatient(upstream);
    const client = await sidecar.connect();
    client.send(request('POST', '/', [`Content-Length: ${TOTAL}`]));
    const arrived = await upstream.request();
    const upload = pour(client.socket);

    expect(await heldBack(client.socket, arrived.connection.socket, upload.accepted)).toBeLessThan(HELD);

    arrived.connection.socket.resume();
    await upload.finished;
    await arrived.connection.received.reached(TOTAL);
    arrived.answer(ok('all of it'));
    expect((await client.response()).body).toBe('all of it');
  });

  it('for a download to an app that does not read', async () => {
    const upstream = await startUpstream();
    const sidecar = await startPatient(upstream);
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();
    client.socket.pause();
    client.received.discard();
    arrived.answer(message('HTTP/1.1 200 OK', [`Content-Length: ${TOTAL}`]));
    const download = pour(arrived.connection.socket);

    expect(await heldBack(arrived.connection.socket, client.socket, download.accepted)).toBeLessThan(HELD);

    client.socket.resume();
    await download.finished;
    await client.received.reached(TOTAL);
  });

  it('for pipelined requests of an app that does not read its answers', async () => {
    const each = TOTAL / 4;
    const upstream = await startUpstream((arrived) => arrived.answer(ok('x'.repeat(each))));
    const sidecar = await startPatient(upstream);
    const client = await sidecar.connect();
    client.socket.pause();
    client.received.discard();

    client.send(get('/').repeat(TOTAL / each));
    await until(() => upstream.requests.length > 0);
    const [connection] = upstream.connections as [UpstreamConnection];

    const sent = () => upstream.requests.length * each - connection.socket.writableLength;
    expect(await heldBack(connection.socket, client.socket, sent)).toBeLessThan(HELD);
    client.socket.resume();
    await client.received.reached(TOTAL);
    expect(upstream.requests).toHaveLength(TOTAL / each);
  });

  it('for a tunnel in both directions', async () => {
    const upstream = await startUpstream();
    const sidecar = await startPatient(upstream);
    const client = await sidecar.connect();
    client.send(get('/', 'Connection: Upgrade', 'Upgrade: raw'));
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 101 Switching Protocols', ['Connection: Upgrade', 'Upgrade: raw']));
    await client.head();
    for (const { socket, received } of [client, arrived.connection]) {
      socket.pause();
      received.discard();
    }
    const up = pour(client.socket);
    const down = pour(arrived.connection.socket);

    expect(await heldBack(client.socket, arrived.connection.socket, up.accepted)).toBeLessThan(HELD);
    expect(await heldBack(arrived.connection.socket, client.socket, down.accepted)).toBeLessThan(HELD);

    client.socket.resume();
    arrived.connection.socket.resume();
    await Promise.all([up.finished, down.finished]);
    await Promise.all([arrived.connection.received.reached(TOTAL), client.received.reached(TOTAL)]);
  });
});
