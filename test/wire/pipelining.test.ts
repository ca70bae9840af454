import { describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, ok, post, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import { startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';
import { socketOfSidecar } from './sidecar-socket.ts';

describe('pipelined requests', () => {
  it('are answered in order, including those with bodies', async () => {
    const upstream = await startUpstream(async (arrived) => {
      const { text } = await arrived.body();
      arrived.answer(ok(`${arrived.head.method} ${arrived.head.target} ${text}`));
    });
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(
      get('/1') +
        post('/2', 'two') +
        request('PUT', '/3', [CHUNKED]) +
        chunk('thr') +
        chunk('ee') +
        LAST_CHUNK +
        request('HEAD', '/4') +
        get('/5'),
    );

    const bodies: string[] = [];
    for (const method of ['GET', 'POST', 'PUT', 'HEAD', 'GET'])
      bodies.push((await client.response(method)).body);
    expect(bodies).toEqual(['GET /1 ', 'POST /2 two', 'PUT /3 three', '', 'GET /5 ']);
  });

  it('are answered in order when the upstream is slow with the first', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/1') + get('/2'));

    const first = await upstream.request();
    await sidecar.metric('proxy_requests_in_flight');
    expect(client.received.text).toBe('');
    first.answer(ok('one'));
    const second = await upstream.request();
    second.answer(ok('two'));

    expect([(await client.response()).body, (await client.response()).body]).toEqual(['one', 'two']);
  });

  it('are assembled from pieces while an earlier one is served', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    await sidecar.metric('proxy_requests_in_flight');
    client.send(get('/1'));
    const first = await upstream.request();
    const accepted = socketOfSidecar(client);
    for (const piece of get('/2').match(/.{1,10}/gs) ?? []) {
      const before = accepted.bytesRead;
      client.send(piece);
      await until(() => accepted.bytesRead === before + piece.length);
    }

    first.answer(ok('one'));
    (await upstream.request()).answer(ok('two'));

    expect([(await client.response()).body, (await client.response()).body]).toEqual(['one', 'two']);
    expect(upstream.targets).toEqual(['/1', '/2']);
  });

  it('before a malformed one are answered, and then that one is refused', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok('fine')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(`${get('/1')}${get('/2', 'X : y')}${get('/3')}`);

    expect((await client.response()).body).toBe('fine');
    expectProblem(await client.response(), 'bad_request');
    await client.closed();
    expect(upstream.targets).toEqual(['/1']);
  });

  it('after a request with Connection: close are ignored', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok('fine')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(get('/1', 'Connection: close') + get('/2'));

    expect((await client.response()).body).toBe('fine');
    await client.closed();
    await sidecar.fence();
    expect(upstream.targets).toEqual(['/1', '/fence']);
  });

  it('are all answered when hundreds come in one write', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok(arrived.head.target)));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    const targets = Array.from({ length: 300 }, (_, index) => `/${index}`);

    client.send(targets.map((target) => get(target)).join(''));

    for (const target of targets) expect((await client.response()).body).toBe(target);
  });

  it('are read ahead only up to a limit while an earlier one is served', async () => {
    const upstream = await startUpstream((arrived) => {
      if (arrived.head.target === '/fence') arrived.answer(ok());
    });
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    await sidecar.fence();
    const accepted = socketOfSidecar(client);

    client.send(get('/first').repeat(500_000));
    let read = -1;
    for (let quiet = 0; quiet < 5; quiet = accepted.bytesRead === read ? quiet + 1 : 0) {
      read = accepted.bytesRead;
      await sidecar.fence();
    }

    expect(read).toBeLessThan(256 * 1024);
  });
});
