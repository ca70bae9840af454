import { describe, expect, it } from 'vitest';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok, request } from './messages.ts';
import { type RawUpstream, startUpstream, type UpstreamRequest } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

/** By the answer to `/fence` the sidecar has seen what was sent to it before: the end of the app's side. */
async function start() {
  const upstream = await startUpstream((arrived) => {
    if (arrived.head.target === '/fence') arrived.answer(ok());
  });
  const sidecar = await startSidecar({ upstream });
  return { upstream, sidecar, client: await sidecar.connect() };
}

async function arrival(upstream: RawUpstream, target: string): Promise<UpstreamRequest> {
  for (;;) {
    const arrived = await upstream.request();
    if (arrived.head.target === target) return arrived;
  }
}

describe('an app that ends its side once it has asked', () => {
  it('gets its answer, and the connection is closed', async () => {
    const { upstream, sidecar, client } = await start();
    client.send(get('/')).end();
    const arrived = await arrival(upstream, '/');
    await sidecar.fence();

    arrived.answer(ok('late'));

    expect((await client.response()).body).toBe('late');
    expect(await client.closed()).toBe('end');
    await sidecar.idle();
  });

  it('gets an answer that comes in pieces', async () => {
    const { upstream, sidecar, client } = await start();
    client.send(`${request('POST', '/', ['Content-Length: 3'])}abc`);
    const arrived = await arrival(upstream, '/');
    arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('first')));
    await client.received.contains('first');
    client.end();
    await sidecar.fence();

    arrived.answer(chunk(' second') + LAST_CHUNK);

    expect((await client.response()).body).toBe('first second');
    expect(await client.closed()).toBe('end');
  });

  it('gets the answers to all that it asked', async () => {
    const { upstream, sidecar, client } = await start();
    client.send(get('/1') + get('/2')).end();
    for (const target of ['/1', '/2']) {
      const arrived = await arrival(upstream, target);
      await sidecar.fence();
      arrived.answer(ok(target));
      expect((await client.response()).body).toBe(target);
    }
    expect(await client.closed()).toBe('end');
  });

  it('and leaves before the answer: the upstream request is aborted', async () => {
    const { upstream, sidecar, client } = await start();
    client.send(get('/')).end();
    const arrived = await arrival(upstream, '/');
    await sidecar.fence();

    client.destroy();

    await arrived.connection.closed();
    await sidecar.idle();
  });
});
