import { describe, expect, it } from 'vitest';
import { get, message, ok, post } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

describe("the app's connection", () => {
  it('serves one request after another', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok(arrived.head.target)));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    for (const target of ['/1', '/2', '/3']) {
      expect((await client.send(get(target)).response()).body).toBe(target);
    }
  });

  it.each(['close', 'Close', 'foo, CLOSE'])(
    'is closed after the answer to `Connection: %s`',
    async (value) => {
      const upstream = await startUpstream(answering(ok('last')));
      const sidecar = await startSidecar({ upstream });
      const client = await sidecar.connect();

      const answer = await client.send(get('/', `Connection: ${value}`)).response();

      expect(answer.body).toBe('last');
      expect(answer.head.value('connection')?.toLowerCase()).toBe('close');
      expect(await client.closed()).toBe('end');
    },
  );

  it.each(['\r\n', 'x'.repeat(20_000), get('/next')])(
    'whose last request is followed by excess bytes gets the answer whole (%#)',
    async (stray) => {
      const body = 'a'.repeat(200_000);
      const upstream = await startUpstream(answering(ok(body)));
      const sidecar = await startSidecar({ upstream });
      const client = await sidecar.connect();

      const answer = await client.send(get('/', 'Connection: close') + stray).response();

      expect(answer.body).toBe(body);
      expect(await client.closed()).toBe('end');
      expect(upstream.targets).toEqual(['/']);
    },
  );

  it('replaced for each request gets the right answer each time', async () => {
    const upstream = await startUpstream((arrived) =>
      arrived.answer(ok(`${arrived.head.target} ${arrived.head.value('x')}`)),
    );
    const sidecar = await startSidecar({ upstream });
    const asked = ['/1 a', '/2 a', '/2 b', '/1 b', '/1 a', '/3 c'];

    for (const each of asked) {
      const [target = '', value = ''] = each.split(' ');
      const answer = await sidecar.exchange(get(target, 'Connection: close', `X: ${value}`));
      expect(answer.body).toBe(each);
    }

    expect(upstream.connections).toHaveLength(1);
  });

  it('that sends nothing does no harm', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    const silent = await sidecar.connect();

    silent.end();

    await silent.closed();
    expect(silent.received.text).toBe('');
    expect((await sidecar.fence()).status).toBe(200);
  });
});

describe('upstream connections', () => {
  it('are reused, by other clients too', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream });

    for (const target of ['/1', '/2', '/3', '/4']) await sidecar.exchange(get(target, 'Connection: close'));

    expect(upstream.targets).toEqual(['/1', '/2', '/3', '/4']);
    expect(upstream.connections).toHaveLength(1);
  });

  it('carry one request at a time', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const clients = await Promise.all([sidecar.connect(), sidecar.connect(), sidecar.connect()]);
    for (const client of clients) client.send(get('/'));

    const arrived = [await upstream.request(), await upstream.request(), await upstream.request()];

    expect(new Set(arrived.map(({ connection }) => connection)).size).toBe(3);
    for (const [index, request] of arrived.entries()) request.answer(ok(String(index)));
    const bodies = await Promise.all(clients.map(async (client) => (await client.response()).body));
    expect(bodies.toSorted()).toEqual(['0', '1', '2']);
  });

  it.each([
    ['says close', ok('x', 'Connection: close')],
    ['is HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx'],
  ])('are not reused when the answer %s', async (_, bytes) => {
    const upstream = await startUpstream(answering(bytes));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    await client.send(get('/1')).response();
    await client.send(get('/2')).response();

    expect(upstream.connections).toHaveLength(2);
    expect(upstream.targets).toEqual(['/1', '/2']);
  });

  it('closed by the upstream while idle are replaced', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    await client.send(get('/1')).response();

    const [idle] = upstream.connections;
    idle?.end();
    await idle?.closed();

    expect((await client.send(post('/2', 'not idempotent')).response()).status).toBe(200);
    expect(upstream.connections).toHaveLength(2);
  });

  it('are not shared between an answer still being read and the next request', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const slow = await sidecar.connect();
    slow.send(get('/slow'));
    const first = await upstream.request();
    first.answer(message('HTTP/1.1 200 OK', ['Content-Length: 10'], 'hello'));
    await slow.received.contains('hello');

    const other = await sidecar.connect();
    other.send(get('/other'));
    const second = await upstream.request();
    second.answer(ok('other'));

    expect((await other.response()).body).toBe('other');
    expect(second.connection).not.toBe(first.connection);
    first.answer('world');
    expect((await slow.response()).body).toBe('helloworld');
  });
});
