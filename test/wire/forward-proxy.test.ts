import { describe, expect, it } from 'vitest';
import { selfSigned } from './certificate.ts';
import { FakeBearer, FIRST, renewable, SECOND, withoutToken } from './fake-bearer.ts';
import { answer, get, message, ok } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { forwardTo, routeTo, startSidecar } from './sidecar.ts';
import { temporaryFile } from './temporary-file.ts';

/** An absolute-form request, with the Host that belongs to it unless told otherwise. */
function absolute(
  authority: string,
  pathAndQuery = '/',
  fields: readonly string[] = [],
  host = authority,
): string {
  return message(`GET http://${authority}${pathAndQuery} HTTP/1.1`, [`Host: ${host}`, ...fields]);
}

describe('a host listed for the forward proxy', () => {
  it('gets the request in origin-form with the token and its own Host', async () => {
    const upstream = await startUpstream(answering(ok('hello')));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream) });

    expect((await sidecar.exchange(absolute(upstream.authority, '/a?b', ['X-One: 1']))).body).toBe('hello');

    const [arrived] = upstream.requests;
    expect(arrived?.head.startLine).toBe('GET /a?b HTTP/1.1');
    expect(arrived?.head.values('host')).toEqual([upstream.authority]);
    expect(arrived?.head.values('authorization')).toEqual([FIRST]);
    expect(arrived?.head.value('x-one')).toBe('1');
    expect(await sidecar.metric('proxy_requests_total', { route: 'forward:127.0.0.1', code: '200' })).toBe(1);
  });

  it.each([
    ['', 'GET / HTTP/1.1'],
    ['?q', 'GET /?q HTTP/1.1'],
    ['/../a', 'GET /../a HTTP/1.1'],
  ])('and requested with path %j gets the path %j', async (pathAndQuery, startLine) => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream) });
    await sidecar.exchange(absolute(upstream.authority, pathAndQuery));
    expect(upstream.requests[0]?.head.startLine).toBe(startLine);
  });

  it('gets OPTIONS * when the URL has no path', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream) });
    const host = `Host: ${upstream.authority}`;
    await sidecar.exchange(message(`OPTIONS http://${upstream.authority} HTTP/1.1`, [host]));
    await sidecar.exchange(message(`OPTIONS http://${upstream.authority}?q HTTP/1.1`, [host]));
    expect(upstream.targets).toEqual(['*', '/?q']);
  });

  it('is reached on a reused connection', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream) });
    const client = await sidecar.connect();
    for (let n = 0; n < 3; n++) await client.send(absolute(upstream.authority)).response();
    expect(upstream.connections).toHaveLength(1);
  });

  it('is reached over TLS, never in clear, if the entry says so', async () => {
    const certificate = selfSigned('127.0.0.1');
    const upstream = await startUpstream(answering(ok('private')), certificate);
    const caFile = await temporaryFile('ca.crt', certificate.cert);
    const sidecar = await startSidecar({
      forwardProxy: forwardTo(upstream, { upgradeToTls: true, tls: { caFile } }),
    });
    expect((await sidecar.exchange(absolute(upstream.authority))).body).toBe('private');
    expect(upstream.requests[0]?.head.values('authorization')).toEqual([FIRST]);
  });

  it.each([
    ['in clear, with a warning at the start', 'api.example.test', false, 1],
    ['over TLS, without one', 'api.example.test', true, 0],
    ['in clear on this machine, without one', 'localhost', false, 0],
  ])('gets tokens %s', async (_, host, upgradeToTls, warnings) => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream, { host, upgradeToTls }) });
    expect(sidecar.logLines.filter((line) => line.includes('clear text'))).toHaveLength(warnings);
  });

  it('gets no request when there is no token', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream), bearer: withoutToken() });
    expectProblem(await sidecar.exchange(absolute(upstream.authority)), 'token_unavailable');
    expect(upstream.connections).toHaveLength(0);
  });

  it('that answers 401 gets the request again with another token', async () => {
    const upstream = await startUpstream(inTurn(answering(answer(401)), answering(ok('now'))));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream), bearer: renewable() });
    expect((await sidecar.exchange(absolute(upstream.authority))).body).toBe('now');
    expect(upstream.requests.map(({ head }) => head.value('authorization'))).toEqual([FIRST, SECOND]);
  });

  it('gets the token of its own credential', async () => {
    const upstream = await startUpstream(answering(ok()));
    const bearers = new Map([
      ['default', new FakeBearer()],
      ['other', new FakeBearer({ held: SECOND })],
    ]);
    const sidecar = await startSidecar({
      forwardProxy: forwardTo(upstream, { credential: 'other' }),
      bearers,
    });
    await sidecar.exchange(absolute(upstream.authority));
    expect(upstream.requests[0]?.head.values('authorization')).toEqual([SECOND]);
  });
});

describe('a host that is not listed for the forward proxy', () => {
  it('is refused although a route matches it', async () => {
    const listed = await startUpstream(answering(ok()));
    const other = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ routes: [routeTo(listed)], forwardProxy: forwardTo(listed) });
    expectProblem(await sidecar.exchange(absolute(other.authority)), 'destination_not_allowed');
    expect([...listed.requests, ...other.requests]).toEqual([]);
  });

  it('is named in the error as it was requested', async () => {
    const sidecar = await startSidecar({
      forwardProxy: forwardTo({ address: { host: 'a.test', port: 80 } }),
    });
    const client = await sidecar.connect();
    const detail = async (authority: string) =>
      JSON.parse((await client.send(absolute(authority)).response()).body).detail;
    expect(await detail('b.test')).toBe('b.test is not on the list of the forward proxy');
    expect(await detail('B.test:81')).toBe('b.test:81 is not on the list of the forward proxy');
  });

  it('is reached without a token when other hosts are allowed, with the app’s own fields', async () => {
    const listed = await startUpstream(answering(ok()));
    const other = await startUpstream(answering(ok('public')), 'plain');
    const sidecar = await startSidecar({ forwardProxy: forwardTo(listed, {}, { otherHosts: 'pass' }) });

    expect((await sidecar.exchange(absolute(other.authority))).body).toBe('public');
    expect((await sidecar.exchange(absolute(other.authority, '/', ['Authorization: Basic YTpi']))).body).toBe(
      'public',
    );

    expect(other.requests.map(({ head }) => head.values('authorization'))).toEqual([[], ['Basic YTpi']]);
    expect(await sidecar.metric('proxy_requests_total', { route: 'forward:other' })).toBe(2);
  });

  it('that answers 401 gets no token either', async () => {
    const listed = await startUpstream(answering(ok()));
    const other = await startUpstream(answering(answer(401)), 'plain');
    const sidecar = await startSidecar({
      forwardProxy: forwardTo(listed, {}, { otherHosts: 'pass' }),
      bearer: renewable(),
    });
    expect((await sidecar.exchange(absolute(other.authority))).status).toBe(401);
    expect(other.requests.map(({ head }) => head.values('authorization'))).toEqual([[]]);
  });
});

it('the forward proxy keeps idle connections to the 256 most recent destinations', async () => {
  const upstream = await startUpstream(answering(ok()));
  const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream, {}, { otherHosts: 'pass' }) });
  const client = await sidecar.connect();
  async function askOthers(network: number, count: number): Promise<void> {
    for (let host = 1; host <= count; host++) {
      const authority = `127.${network}.0.${host}:${upstream.address.port}`;
      expectProblem(await client.send(absolute(authority)).response(), 'upstream_unreachable');
    }
  }
  await client.send(absolute(upstream.authority)).response();

  await askOthers(1, 255);
  await client.send(absolute(upstream.authority)).response();
  expect(upstream.connections).toHaveLength(1);
  await askOthers(2, 255);
  await askOthers(3, 1);

  await upstream.connections[0]?.closed();
});

describe('an ambiguous forward proxy request is refused', () => {
  it.each([
    [
      'a Host field that names another host',
      (authority: string) => absolute(authority, '/', [], 'evil.test'),
    ],
    ['a Host field with another port', (authority: string) => absolute(authority, '/', [], '127.0.0.1:1')],
    ['user information', (authority: string) => absolute(`user@${authority}`, '/', [], authority)],
    [
      'a scheme that is not http',
      (authority: string) => message(`GET ftp://${authority}/ HTTP/1.1`, [`Host: ${authority}`]),
    ],
  ])('%s', async (_name, bytes) => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream) });
    expectProblem(await sidecar.exchange(bytes(upstream.authority)), 'bad_request');
    expect(upstream.connections).toHaveLength(0);
  });
});

it('the forward proxy listener also serves routes', async () => {
  const upstream = await startUpstream(answering(ok('routed')));
  const listed = await startUpstream(answering(ok('forwarded')));
  const sidecar = await startSidecar({ upstream, forwardProxy: forwardTo(listed) });
  const client = await sidecar.connect();
  expect((await client.send(get('/')).response()).body).toBe('routed');
  expect((await client.send(absolute(listed.authority)).response()).body).toBe('forwarded');
});
