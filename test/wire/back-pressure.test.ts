import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { get, message, ok, request } from './messages.ts';
import { type RawUpstream, startUpstream } from './raw-upstream.ts';
import { routeTo, type Sidecar, startSidecar } from './sidecar.ts';

const MEGABYTE = 1024 * 1024;
const TOTAL = 64 * MEGABYTE;

/**
 * What the kernel may hold on two loopback hops (at most 4 MB to send and 6 MB to receive on each, Linux's defaults)
 * and a little that the sidecar may hold itself. An unbounded buffer takes all of TOTAL.
 */
const BOUND = 32 * MEGABYTE;

/** Writes blocks, TOTAL bytes or a little more, as fast as the peer takes them. */
function pour(
  socket: Socket,
  block = Buffer.alloc(64 * 1024, 'x'),
): { accepted(): number; finished: Promise<void> } {
  let accepted = 0;
  const finished = new Promise<void>((resolve, reject) => {
    const next = (): void => {
      socket.write(block, (error) => {
        accepted += block.length;
        if (error) reject(error);
        else if (accepted >= TOTAL) resolve();
        else next();
      });
    };
    next();
  });
  return { accepted: () => accepted, finished };
}

/**
 * Resolves when the sender is held back: twenty round trips through the same sidecar, on the same event loop, in
 * which it got rid of nothing. Returns what it got rid of until then.
 */
async function stalledAt(sidecar: Sidecar, accepted: () => number): Promise<number> {
  let unchanged = 0;
  for (let last = -1; unchanged < 20; unchanged += 1) {
    await sidecar.exchange(get('/ping/', 'Connection: close'));
    if (accepted() !== last) unchanged = 0;
    last = accepted();
  }
  return accepted();
}

/** The route under test, and one beside it for the round trips. */
async function startBeside(upstream: RawUpstream): Promise<Sidecar> {
  const ping = await startUpstream((arrived) => arrived.answer(ok('pong')));
  return startSidecar({
    routes: [routeTo(ping, { name: 'ping', match: { pathPrefix: '/ping' } }), routeTo(upstream)],
  });
}

describe('a slow reader holds a fast writer back', () => {
  it('an upload to an upstream that does not read', async () => {
    const upstream = await startUpstream((arrived) => {
      arrived.connection.socket.pause();
      arrived.connection.received.discard();
    });
    const sidecar = await startBeside(upstream);
    const client = await sidecar.connect();
    client.send(request('POST', '/', [`Content-Length: ${TOTAL}`]));
    const arrived = await upstream.request();
    const upload = pour(client.socket);

    expect(await stalledAt(sidecar, upload.accepted)).toBeLessThan(BOUND);

    arrived.connection.socket.resume();
    await upload.finished;
    await arrived.connection.received.reached(TOTAL);
    arrived.answer(ok('all of it'));
    expect((await client.response()).body).toBe('all of it');
  });

  it('a download to an app that does not read', async () => {
    const upstream = await startUpstream();
    const sidecar = await startBeside(upstream);
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();
    client.socket.pause();
    client.received.discard();
    arrived.answer(message('HTTP/1.1 200 OK', [`Content-Length: ${TOTAL}`]));
    const download = pour(arrived.connection.socket);

    expect(await stalledAt(sidecar, download.accepted)).toBeLessThan(BOUND);

    client.socket.resume();
    await download.finished;
    await client.received.reached(TOTAL);
  });

  it('pipelined requests of an app that does not read its answers', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok('x'.repeat(MEGABYTE))));
    const sidecar = await startBeside(upstream);
    const client = await sidecar.connect();
    client.socket.pause();
    client.received.discard();

    client.send(get('/').repeat(TOTAL / MEGABYTE));

    const answered = () => upstream.requests.length * MEGABYTE;
    expect(await stalledAt(sidecar, answered)).toBeLessThan(BOUND);
    client.socket.resume();
    await client.received.reached(TOTAL);
  });

  it('interim answers to an app that does not read, which then gets its answer', async () => {
    const upstream = await startUpstream();
    const sidecar = await startBeside(upstream);
    const client = await sidecar.connect();
    client.socket.pause();
    client.received.discard();
    client.send(get('/'));
    const arrived = await upstream.request();
    const hint = Buffer.from(message('HTTP/1.1 103 Early Hints', [`Link: ${'x'.repeat(64 * 1024 - 40)}`]));
    const sent = pour(arrived.connection.socket, hint);

    expect(await stalledAt(sidecar, sent.accepted)).toBeLessThan(BOUND);
    client.socket.resume();
    await sent.finished;
    arrived.answer(ok());
    await sidecar.idle();

    expect(await sidecar.metric('proxy_requests_total', { route: 'api', code: '200' })).toBe(1);
  });

  it('a tunnel, both ways', async () => {
    const upstream = await startUpstream();
    const sidecar = await startBeside(upstream);
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

    await stalledAt(sidecar, () => up.accepted() + down.accepted());
    expect(up.accepted()).toBeLessThan(BOUND);
    expect(down.accepted()).toBeLessThan(BOUND);

    client.socket.resume();
    arrived.connection.socket.resume();
    await Promise.all([up.finished, down.finished]);
    await Promise.all([arrived.connection.received.reached(TOTAL), client.received.reached(TOTAL)]);
  });
});
