import { describe, expect, it } from 'vitest';
import { FakeBearer, FIRST, SECOND } from './fake-bearer.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, ok, post, request } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { routeTo, startSidecar } from './sidecar.ts';

describe('the injected token', () => {
  it('leaves the request unchanged byte for byte except Host and Authorization', async () => {
    const upstream = await startUpstream(answering(ok('hello')));
    const sidecar = await startSidecar({ upstream });

    const answer = await sidecar.exchange(get('/a/b?c=%20d', 'X-One: 1', 'Accept: */*'));

    expect(answer.body).toBe('hello');
    const [arrived] = upstream.requests;
    expect(arrived?.head.startLine).toBe('GET /a/b?c=%20d HTTP/1.1');
    expect(arrived?.head.value('host')).toBe(upstream.authority);
    expect(arrived?.head.value('authorization')).toBe(FIRST);
    expect(arrived?.head.value('x-one')).toBe('1');
    expect(arrived?.head.value('accept')).toBe('*/*');
    expect(arrived?.head.names.filter((name) => /^via$|^forwarded$|^x-forwarded/.test(name))).toEqual([]);
  });

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'PURGE'])(
    'is added to %s',
    async (method) => {
      const upstream = await startUpstream(answering(ok('done')));
      const sidecar = await startSidecar({ upstream });

      expect((await sidecar.exchange(request(method, '/'))).body).toBe('done');

      expect(upstream.requests[0]?.head.method).toBe(method);
      expect(upstream.requests[0]?.head.values('authorization')).toEqual([FIRST]);
    },
  );

  it.each(['POST', 'DELETE', 'OPTIONS', 'GET'])(
    'is added to %s with a chunked body, which stays chunked',
    async (method) => {
      const upstream = await startUpstream(answering(ok('done')));
      const sidecar = await startSidecar({ upstream });

      const sent = `${request(method, '/', [CHUNKED])}${chunk('some ')}${chunk('body')}${LAST_CHUNK}`;
      expect((await sidecar.exchange(sent)).body).toBe('done');

      const [arrived] = upstream.requests;
      expect((await arrived?.body())?.text).toBe('some body');
      expect(arrived?.head.values('authorization')).toEqual([FIRST]);
      expect(upstream.requests).toHaveLength(1);
    },
  );

  it('is added to a request with a body of known length', async () => {
    const upstream = await startUpstream(answering(ok('done')));
    const sidecar = await startSidecar({ upstream });

    await sidecar.exchange(post('/', 'some body'));

    const [arrived] = upstream.requests;
    expect(arrived?.head.value('content-length')).toBe('9');
    expect((await arrived?.body())?.text).toBe('some body');
    expect(arrived?.head.values('authorization')).toEqual([FIRST]);
  });

  it('is the one held at that moment, also on an open connection', async () => {
    const upstream = await startUpstream(answering(ok()));
    const bearer = new FakeBearer();
    const sidecar = await startSidecar({ upstream, bearer });
    const client = await sidecar.connect();

    await client.send(get('/')).response();
    bearer.held = SECOND;
    await client.send(get('/')).response();

    expect(upstream.requests.map(({ head }) => head.values('authorization'))).toEqual([[FIRST], [SECOND]]);
  });

  it('is sent once it has been obtained if none was held', async () => {
    const upstream = await startUpstream(answering(ok('late')));
    const granted = Promise.withResolvers<string>();
    const asked = Promise.withResolvers<void>();
    const bearer = new FakeBearer({
      held: undefined,
      obtain: () => {
        asked.resolve();
        return granted.promise;
      },
    });
    const sidecar = await startSidecar({ upstream, bearer });
    const client = await sidecar.connect();

    client.send(post('/', 'the body'));
    await asked.promise;
    expect(upstream.text).toBe('');
    granted.resolve(SECOND);

    expect((await client.response()).body).toBe('late');
    expect(upstream.requests[0]?.head.values('authorization')).toEqual([SECOND]);
    expect((await upstream.requests[0]?.body())?.text).toBe('the body');
  });

  it('is that of the route’s own credential', async () => {
    const one = await startUpstream(answering(ok()));
    const two = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({
      routes: [
        routeTo(one, { name: 'one', match: { pathPrefix: '/one' }, credential: 'first' }),
        routeTo(two, { name: 'two', match: { pathPrefix: '/two' }, credential: 'second' }),
      ],
      bearers: new Map([
        ['first', new FakeBearer({ held: FIRST })],
        ['second', new FakeBearer({ held: SECOND })],
      ]),
    });

    await sidecar.exchange(get('/two'));
    await sidecar.exchange(get('/one'));

    expect(one.requests.map(({ head }) => head.values('authorization'))).toEqual([[FIRST]]);
    expect(two.requests.map(({ head }) => head.values('authorization'))).toEqual([[SECOND]]);
  });
});
