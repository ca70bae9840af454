import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok, post, request } from './messages.ts';
import { type RawUpstream, startUpstream, type UpstreamRequest } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';
import { socketOfSidecar } from './sidecar-socket.ts';

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

describe('an app that half-closes after its request', () => {
  it('gets its answer, and then the connection is closed', async () => {
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

  it('gets the answers to all its requests', async () => {
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

  it('while the previous answer is being sent also gets the next one', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/1') + get('/2'));
    const first = await upstream.request();
    const accepted = socketOfSidecar(client);
    accepted.cork();
    first.answer(ok('one'));
    await until(() => accepted.writableLength > 0);
    const ended = once(accepted, 'end');
    client.end();
    await ended;

    accepted.uncork();

    expect((await client.response()).body).toBe('one');
    (await upstream.request()).answer(ok('two'));
    expect((await client.response()).body).toBe('two');
    expect(await client.closed()).toBe('end');
  });

  it('with a pipelined body that waits for its connection has it sent whole', async () => {
    const { upstream, sidecar, client } = await start();
    client.send(get('/1') + post('/2', 'whole'));
    client.end();
    const first = await arrival(upstream, '/1');
    await sidecar.fence();

    first.answer(ok('one', 'Connection: close'));

    expect((await client.response()).body).toBe('one');
    const second = await arrival(upstream, '/2');
    expect((await second.body()).text).toBe('whole');
    second.answer(ok('two'));
    expect((await client.response()).body).toBe('two');
    expect(await client.closed()).toBe('end');
  });

  it('and then closes before the answer has the upstream request aborted', async () => {
    const { upstream, sidecar, client } = await start();
    client.send(get('/')).end();
    const arrived = await arrival(upstream, '/');
    await sidecar.fence();

    client.destroy();

    await arrived.connection.closed();
    await sidecar.idle();
  });
});
