import { describe, expect, it } from 'vitest';
import type { Injection } from '../../src/config/config.ts';
import { FakeBearer, renewable, TOKEN_MARK, withoutToken } from './fake-bearer.ts';
import { connectHttp2 } from './http2/raw-http2-client.ts';
import { frame, startFrames, TYPE } from './http2-upstream/frame-upstream.ts';
import { HTTP2, startHttp2 } from './http2-upstream/node-upstream.ts';
import { answer, CHUNKED, chunk, get, message, ok, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { forwardTo, type RouteOverrides, routeTo, startSidecar } from './sidecar.ts';

const FIRST = `${TOKEN_MARK}-1`;
const SECOND = `${TOKEN_MARK}-2`;
const KEY: Injection = { into: 'header', header: 'X-Api-Key' };
const QUERY: Injection = { into: 'query', parameter: 'access_token' };
const PLACEHOLDER: Injection = { into: 'placeholder', header: 'Authorization', placeholder: '{{crm}}' };

/** The request as it reaches an upstream to which tokens go so. */
async function sent(inject: readonly Injection[], bytes: string, route: RouteOverrides = {}) {
  const upstream = await startUpstream(answering(ok()));
  const sidecar = await startSidecar({ upstream, route: { inject, ...route } });
  expect((await sidecar.exchange(bytes)).status).toBe(200);
  const [arrived] = upstream.requests;
  if (arrived === undefined) throw new Error('nothing arrived');
  return arrived;
}

describe('the token is put into', () => {
  it.each<[string, Injection[], string[], string[]]>([
    ['a header of any name, without a scheme', [KEY], [FIRST], []],
    ['a header with a scheme', [{ ...KEY, scheme: 'Token' }], [`Token ${FIRST}`], []],
    [
      'several at once',
      [KEY, { into: 'header', header: 'Authorization', scheme: 'Bearer' }],
      [FIRST],
      [`Bearer ${FIRST}`],
    ],
    ['Authorization without a scheme', [{ into: 'header', header: 'Authorization' }], [], [FIRST]],
  ])('%s, replacing the app’s own fields of that name', async (_, inject, keys, authorizations) => {
    const own = ['X-API-KEY: own', 'x_api_key: own', 'Authorization: Basic own', 'X-Other: 1'];
    const { head } = await sent(inject, get('/a?b=1', ...own, 'Connection: x-api-key'));
    expect(head.startLine).toBe('GET /a?b=1 HTTP/1.1');
    expect(head.values('x-api-key')).toEqual(keys);
    expect(head.values('authorization')).toEqual(authorizations);
    expect(head.value('x-other')).toBe('1');
  });

  it('a query parameter in place of the app’s', async () => {
    const { head } = await sent([QUERY], get('/a?access%5Ftoken=own&b=1', 'Authorization: Basic own'));
    expect(head.startLine).toBe(`GET /a?b=1&access_token=${FIRST} HTTP/1.1`);
    expect(head.values('authorization')).toEqual([]);
  });

  it('the position of the placeholder, after the scheme that the app chose', async () => {
    const { head } = await sent([PLACEHOLDER], get('/', 'Authorization: Token {{crm}}'));
    expect(head.values('authorization')).toEqual([`Token ${FIRST}`]);
    const bare = await sent([PLACEHOLDER], get('/', 'X-Other: 1'));
    expect(bare.head.values('authorization')).toEqual([]);
  });

  it('no trailer, and the app’s trailer of that name is removed', async () => {
    const trailers = 'X-Api-Key: own\r\nX-Sum: 1\r\n\r\n';
    const arrived = await sent([KEY], `${request('POST', '/', [CHUNKED])}${chunk('data')}0\r\n${trailers}`);
    const { trailers: came } = await arrived.body();
    expect(came.values('x-sum')).toEqual(['1']);
    expect(came.values('x-api-key')).toEqual([]);
  });

  it('nothing in a TRACE request or when there is no token', async () => {
    const { head } = await sent([KEY, QUERY], request('TRACE', '/?access_token=own', ['X-Api-Key: own']));
    expect(head.startLine).toBe('TRACE / HTTP/1.1');
    expect(head.values('x-api-key')).toEqual([]);
    const upstream = await startUpstream(answering(ok()));
    const route = { inject: [KEY], whenTokenUnavailable: 'passthrough' } as const;
    const sidecar = await startSidecar({ upstream, route, bearer: withoutToken() });
    await sidecar.exchange(get('/', 'X-Api-Key: own'));
    expect(upstream.requests[0]?.head.values('x-api-key')).toEqual([]);
  });

  it('the request that is sent again after a 401, as the new token', async () => {
    const upstream = await startUpstream(inTurn(answering(answer(401)), answering(ok('now'))));
    const bearer = renewable();
    const sidecar = await startSidecar({ upstream, bearer, route: { inject: [KEY, QUERY] } });
    expect((await sidecar.exchange(get('/'))).body).toBe('now');
    expect(upstream.requests.map(({ head }) => head.values('x-api-key'))).toEqual([[FIRST], [SECOND]]);
    expect(upstream.targets).toEqual([`/?access_token=${FIRST}`, `/?access_token=${SECOND}`]);
    expect(bearer.accepts).toEqual([`Bearer ${SECOND}`]);
  });

  it('a request to a host of the forward proxy', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream, { inject: [KEY] }) });
    const host = `Host: ${upstream.authority}`;
    await sidecar.exchange(
      message(`GET http://${upstream.authority}/ HTTP/1.1`, [host, 'Authorization: own']),
    );
    expect(upstream.requests[0]?.head.values('x-api-key')).toEqual([FIRST]);
    expect(upstream.requests[0]?.head.values('authorization')).toEqual([]);
  });
});

describe('existingAuthorization applies to the injected fields and to Authorization', () => {
  it.each([
    ['the header', get('/', 'x-api-key: own')],
    ['the header, with an underscore', get('/', 'x_api_key: own')],
    ['the parameter', get('/?access_token=own')],
    ['Authorization', get('/', 'Authorization: own')],
  ])('%s', async (_, bytes) => {
    const inject = [KEY, QUERY];
    const { head } = await sent(inject, bytes, { existingAuthorization: 'keep' });
    const text = `${head.startLine} ${head.fields.join(' ')}`;
    expect(text).toContain('own');
    expect(text).not.toContain(TOKEN_MARK);

    const upstream = await startUpstream(answering(ok()));
    const route = { inject, existingAuthorization: 'reject' } as const;
    const sidecar = await startSidecar({ upstream, route });
    expectProblem(await sidecar.exchange(bytes), 'authorization_not_allowed');
    expect((await sidecar.exchange(get('/'))).status).toBe(200);
    expect(upstream.requests).toHaveLength(1);
  });
});

describe('a request without the placeholder', () => {
  const PROTOCOLS = ['HTTP/1.1', 'HTTP/2'] as const;
  const OTHERS: Injection = { into: 'placeholder', header: 'X-Api-Key', placeholder: '{{other}}' };

  async function asked(protocol: (typeof PROTOCOLS)[number], status: 200 | 401, bearer: FakeBearer) {
    const inject = [PLACEHOLDER, OTHERS];
    if (protocol === 'HTTP/1.1') {
      const upstream = await startUpstream(answering(answer(status)));
      const sidecar = await startSidecar({ upstream, bearer, route: { inject } });
      expect((await sidecar.exchange(get('/', 'X-Other: 1', 'Authorization: own'))).status).toBe(status);
      return upstream.requests.map(({ head }) => head.values('authorization'));
    }
    const upstream = await startHttp2((arrived) => {
      arrived.stream.respond({ ':status': status }, { endStream: true });
    });
    const sidecar = await startSidecar({ upstream, bearer, route: { protocol: HTTP2, inject } });
    expect((await sidecar.exchange(get('/', 'X-Other: 1', 'Authorization: own'))).status).toBe(status);
    return upstream.arrived.map(({ headers }) => [headers.authorization ?? []].flat());
  }

  it.each(PROTOCOLS)('does not wait for a token: %s', async (protocol) => {
    const bearer = withoutToken();
    expect(await asked(protocol, 200, bearer)).toEqual([[]]);
    expect(bearer.obtained).toBe(0);
  });

  it.each(PROTOCOLS)('does not affect the state of the token, whatever the answer: %s', async (protocol) => {
    const bearer = renewable();
    expect(await asked(protocol, 401, bearer)).toEqual([[]]);
    expect(await asked(protocol, 200, bearer)).toEqual([[]]);
    expect([bearer.refused, bearer.accepts]).toEqual([[], []]);
  });

  it('waits for a token if it is also injected elsewhere', async () => {
    const { head } = await sent([PLACEHOLDER, KEY], get('/'));
    expect(head.values('x-api-key')).toEqual([FIRST]);
  });
});

describe('a request with a placeholder is refused', () => {
  const bytes = (...fields: string[]) => get('/other', ...fields);

  it('if the placeholder is for another route, in another field, or would be kept', async () => {
    const own = await startUpstream(answering(ok()));
    const other = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({
      routes: [
        routeTo(other, { name: 'other', match: { pathPrefix: '/other' } }),
        routeTo(own, {
          name: 'kept',
          match: { pathPrefix: '/kept' },
          inject: [PLACEHOLDER, KEY],
          existingAuthorization: 'keep',
        }),
        routeTo(own, { name: 'own', inject: [PLACEHOLDER] }),
      ],
    });
    for (const refused of [
      bytes('Authorization: Bearer {{crm}}'),
      bytes('X-Any: a {{crm}} b'),
      get('/', 'X-Api-Key: {{crm}}'),
      get('/', 'Authorization: Bearer a{{crm}}'),
      get('/kept', 'Authorization: Bearer {{crm}}', 'X-Api-Key: own'),
    ]) {
      const answered = await sidecar.exchange(refused);
      expectProblem(answered, 'placeholder_not_allowed');
      expect(answered.body).not.toContain(TOKEN_MARK);
    }
    expect([...own.requests, ...other.requests]).toEqual([]);
    expect((await sidecar.exchange(get('/', 'Authorization: Bearer {{crm}}'))).status).toBe(200);
  });

  it('if the host is not listed', async () => {
    const listed = await startUpstream(answering(ok()));
    const other = await startUpstream(answering(ok()), 'plain');
    const sidecar = await startSidecar({
      forwardProxy: forwardTo(listed, { inject: [PLACEHOLDER] }, { otherHosts: 'pass' }),
    });
    const asked = (...fields: string[]) =>
      message(`GET http://${other.authority}/ HTTP/1.1`, [`Host: ${other.authority}`, ...fields]);
    expectProblem(await sidecar.exchange(asked('Authorization: {{crm}}')), 'placeholder_not_allowed');
    expect((await sidecar.exchange(asked('Authorization: own'))).status).toBe(200);
    expect(other.requests.map(({ head }) => head.values('authorization'))).toEqual([['own']]);
  });
});

describe('injection over HTTP/2', () => {
  it('works from the app to the upstream and ignores trailers', async () => {
    const upstream = await startHttp2(async (arrived) => {
      const { trailers } = await arrived.body();
      arrived.stream.respond({ ':status': 200 });
      arrived.stream.end(JSON.stringify(trailers));
    });
    const route = { protocol: HTTP2, inject: [KEY, QUERY] };
    const sidecar = await startSidecar({ upstream, route });
    const client = await connectHttp2(sidecar);
    const fields = [
      ':method',
      'POST',
      ':scheme',
      'http',
      ':path',
      '/?access_token=own',
      ':authority',
      'app.test',
    ];
    const own = ['x-api-key', 'own', 'authorization', 'own'];
    const id = client.request([...fields, ...own], { endStream: false });
    client.headers(id, ['x-api-key', 'own', 'x-sum', '1'], true);
    const answered = await client.answer(id);
    expect(JSON.parse(answered.body)).toEqual({ 'x-sum': '1' });
    const [arrived] = upstream.arrived;
    expect(arrived?.headers['x-api-key']).toBe(FIRST);
    expect(arrived?.headers.authorization).toBeUndefined();
    expect(arrived?.headers[':path']).toBe(`/?access_token=${FIRST}`);
  });

  it('marks the token as never indexed (RFC 7541 §7.1.3)', async () => {
    const upstream = await startFrames((connection) => connection.settings());
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2, inject: [KEY, QUERY] } });
    const answered = sidecar.exchange(get('/'));
    const connection = await upstream.connection();
    const { payload, streamId } = await connection.next(TYPE.HEADERS);
    const key = payload.indexOf('x-api-key');
    expect(payload[key - 2]).toBe(0x10);
    // The name of :path is the fourth of the static table; its value comes as it is.
    const path = payload.indexOf('/?access_token=');
    expect(payload[path - 2]).toBe(0x14);
    connection.send(frame(TYPE.HEADERS, 0x5, streamId, Buffer.from([0x88])));
    expect((await answered).status).toBe(200);
  });

  it.each([
    ['X-Api-Key: own', 'x-api-key', 0x10],
    ['X_Api-Key: own', 'x_api-key', 0x10],
    ['X-Other: 1', '/?access_token=own', 0x14],
  ])('also marks the app’s own field of that name as never indexed: %s', async (field, mark, begins) => {
    const upstream = await startFrames((connection) => connection.settings());
    const route = { protocol: HTTP2, inject: [KEY, QUERY], existingAuthorization: 'keep' } as const;
    const sidecar = await startSidecar({ upstream, route });
    const answered = sidecar.exchange(get('/?access_token=own', field));
    const connection = await upstream.connection();
    const { payload, streamId } = await connection.next(TYPE.HEADERS);
    expect(payload[payload.indexOf(mark) - 2]).toBe(begins);
    connection.send(frame(TYPE.HEADERS, 0x5, streamId, Buffer.from([0x88])));
    expect((await answered).status).toBe(200);
  });
});

it('a target that holds a token appears in no log line, answer or metric', async () => {
  const upstream = await startUpstream((arrived) => arrived.connection.destroy());
  const bearer = new FakeBearer();
  const sidecar = await startSidecar({ upstream, bearer, route: { inject: [KEY, QUERY] } });
  const answered = await sidecar.exchange(get('/secret-path?access_token=own'));
  expectProblem(answered, 'upstream_protocol_error');
  expect(upstream.targets).toEqual([`/secret-path?access_token=${FIRST}`]);
  // That no line holds the token is asserted of every sidecar of this suite.
  expect(`${answered.body}${sidecar.logLines.join('')}`).not.toMatch(/secret-path|access_token/);
  expect(await sidecar.metrics()).not.toMatch(/secret-path|access_token|wire-token/);
});
