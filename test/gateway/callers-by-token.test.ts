import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { Agent } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CallerAuthorizer } from '../../src/gateway/authorizer.ts';
import { CallerBounds } from '../../src/gateway/caller-bounds.ts';
import { createGatewayMetrics } from '../../src/gateway/metrics.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import type { IncomingRequest } from '../../src/proxy/streams/contract.ts';
import { AUDIENCE, FakeCluster } from '../callers/fake-cluster.ts';
import { captureLog } from '../support/log-capture.ts';
import { ShiftedClock } from '../support/shifted-clock.ts';
import {
  askHttp2,
  callers,
  type GatewaySettings,
  type RunningGateway,
  startGateway,
  startUpstream,
  UPSTREAM_TOKEN,
  WEB,
  WEB_ENTRY,
  web,
} from './running-gateway.ts';

const OWN = 'token-sidecar-caller';
const SHOP = { name: 'shop', match: { serviceAccount: 'shop/web' }, allowedRoutes: ['api'] };
const TOKENS = { serviceAccountTokens: { audience: AUDIENCE } };

/** A cluster with the pod shop/web, and a gateway that asks it. No token of the cluster may be in its log, or reach its upstream. */
async function startBoth(settings: GatewaySettings = {}) {
  const cluster = await FakeCluster.start(settings.clock ?? systemClock);
  const pod = cluster.pod('shop', 'web');
  const gateway = await startGateway({
    callers: [SHOP, WEB_ENTRY],
    kubeconfig: await cluster.api.kubeconfig(),
    ...settings,
    gateway: { ...TOKENS, ...settings.gateway },
  });
  const token = cluster.token(pod);
  onTestFinished(() => expectKept(gateway, token));
  await expect.poll(() => gateway.ready()).toBe(200);
  return { cluster, pod, gateway, token };
}

/** A token is known by its signature, and so is a part of it. */
function expectKept({ logLines, upstream }: RunningGateway, token: string): void {
  const signature = token.split('.')[2] as string;
  const seen = upstream.requests.flatMap(({ rawHeaders, rawTrailers, url }) => [
    ...rawHeaders,
    ...rawTrailers,
    url,
  ]);
  for (const text of [logLines.join(''), seen.join('\n')]) expect(text).not.toContain(signature);
  const names = upstream.requests.flatMap(({ rawHeaders, rawTrailers }) => [...rawHeaders, ...rawTrailers]);
  expect(names.filter((name) => /caller|proxy.authorization/i.test(name))).toEqual([]);
}

const bearer = (token: string) => ({ 'proxy-authorization': `Bearer ${token}` });

describe.each([
  ['Proxy-Authorization', bearer],
  ['a field of its own', (token: string) => ({ [OWN]: token })],
] as const)('by %s', (_, shown) => {
  it('a service account reaches its route over HTTP/1.1 and HTTP/2, and its own token is not forwarded', async () => {
    const { gateway, token, cluster } = await startBoth();
    expect((await gateway.get(undefined, '/api/', { headers: shown(token) })).status).toBe(200);
    const session = await gateway.http2(undefined);
    expect((await askHttp2(session, shown(token))).status).toBe(200);
    const grpc = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' };
    const denied = await askHttp2(session, { ...grpc, ...shown(token), ':path': '/admin/' }, 'x');
    expect(denied.headers).toMatchObject({ 'grpc-status': '7', 'token-sidecar-error': 'caller_not_allowed' });
    expect(gateway.upstream.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array.from({ length: 2 }, () => `Bearer ${UPSTREAM_TOKEN}`),
    );
    expect(cluster.reviewed).toHaveLength(1);
    expect(gateway.logLines.join('')).toContain('"caller":"shop/web"');
  });

  it('an invalid token is refused each time, and is not forwarded', async () => {
    const { gateway, cluster, pod } = await startBoth();
    const other = await FakeCluster.start(systemClock, 'ES256', cluster.keys[0]?.kid);
    const past = Math.floor(Date.now() / 1000) - 60;
    const bad = {
      audience: cluster.token(pod, { claims: { aud: ['api'] } }),
      expired: cluster.token(pod, { claims: { exp: past } }),
      signature: other.token(pod),
    };
    for (const [reason, token] of Object.entries(bad)) {
      const answer = await gateway.get(undefined, '/api/', { headers: shown(token) });
      expect(answer).toMatchObject({ status: 401, code: 'caller_unknown' });
      expect(answer.detail).toContain(reason);
      expectKept(gateway, token);
    }
    expect(gateway.upstream.requests).toEqual([]);
  });
});

it('a body waits until its caller is verified, and is then forwarded whole', async () => {
  const bodies: string[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    bodies.push(body);
    response.end(String(body.length));
  };
  const { gateway, token, cluster } = await startBoth({ answer });
  const reviewing = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const answers = cluster.api.answers;
  const review = answers.get('POST /apis/authentication.k8s.io/v1/tokenreviews');
  answers.set('POST /apis/authentication.k8s.io/v1/tokenreviews', async (...args) => {
    reviewing.resolve();
    await go.promise;
    return (review as NonNullable<typeof review>)(...args);
  });
  const long = 'x'.repeat(300_000);
  const raw = await gateway.raw(undefined);
  raw.write(`POST /api/ HTTP/1.1\r\nHost: a\r\n${OWN}: ${token}\r\nContent-Length: ${long.length}\r\n\r\n`);
  raw.write(long);
  const session = await gateway.http2(undefined);
  const overHttp2 = askHttp2(session, { ':method': 'POST', [OWN]: token }, long);
  await reviewing.promise;
  expect(gateway.upstream.requests).toEqual([]);
  go.resolve();
  expect((await overHttp2).body).toBe(String(long.length));
  const [chunk] = (await once(raw, 'data')) as [Buffer];
  expect(chunk.toString()).toMatch(/^HTTP\/1.1 200 /);
  await expect.poll(() => bodies.length).toBe(2);
  expect(bodies).toEqual([long, long]);
});

it('on a kept connection, a token proves nothing once it expires or its pod is deleted', async () => {
  const clock = new ShiftedClock();
  const { gateway, cluster, pod, token } = await startBoth({ clock });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const ask = (shown: string) => gateway.get(undefined, '/api/', { agent, headers: { [OWN]: shown } });
  const brief = cluster.token(pod, { claims: { exp: Math.floor(Date.now() / 1000) + 30 } });
  expect((await ask(brief)).status).toBe(200);
  expect((await ask(token)).status).toBe(200);
  clock.advance(31_000);
  expect(await ask(brief)).toMatchObject({ status: 401, detail: expect.stringContaining('expired') });
  expect((await ask(token)).status).toBe(200);
  cluster.deletePod(pod);
  clock.advance(60_000);
  expect(await ask(token)).toMatchObject({ status: 401, detail: expect.stringContaining('revoked') });
});

it('a cluster that does not answer is told apart from a bad token', async () => {
  const { gateway, cluster, pod } = await startBoth();
  cluster.review = () => ({ code: 500, value: {} });
  const answer = await gateway.get(undefined, '/api/', { headers: { [OWN]: cluster.token(pod) } });
  expect(answer).toMatchObject({ status: 503, code: 'caller_unverified' });
  expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  expect(await gateway.metric('gateway_requests_total{caller="none",decision="unverified"}')).toBe(1);
  expect(gateway.upstream.requests).toEqual([]);
});

it('a token review counts for the address of its connection, and the addresses with most reviews make room', async () => {
  const asked: (readonly [string, string])[] = [];
  const gate = new CallerAuthorizer(
    {
      bounds: new CallerBounds(systemClock, () => 1),
      metrics: createGatewayMetrics(new Registry(), () => 0),
      tokens: {
        verify(token, from) {
          asked.push([token, from]);
          return Promise.resolve({ kind: 'unavailable', retryAfterMs: 1000 });
        },
      },
      trusts: () => false,
      clock: systemClock,
      log: captureLog().log,
    },
    { peer: { kind: 'unnamed' }, address: '10.0.0.1', known: () => {}, retire: () => {} },
  );
  const request = { fields: [OWN, 'a.b.c'] } as unknown as IncomingRequest;
  await expect(gate.identify(request)).rejects.toMatchObject({
    code: 'caller_unverified',
    retryAfterSeconds: 1,
  });
  expect(asked).toEqual([['a.b.c', '10.0.0.1']]);
});

describe('two proofs', () => {
  const again = callers.issue('web', 'spiffe://cluster.local/ns/shop/sa/other');
  it('that agree are one caller, and others are refused', async () => {
    const { gateway, token } = await startBoth();
    const ask = async (certificate: typeof web, shown: string) => {
      const { status, code } = await gateway.get(certificate, '/api/', { headers: { [OWN]: shown } });
      return code ?? status;
    };
    expect(await ask(web, token)).toBe(200);
    expect(await ask(again, token)).toBe('caller_ambiguous');
    expect(await ask(callers.issue('x', 'web.test'), token)).toBe('caller_ambiguous');
    expect(await ask(web, `${token}x`)).toBe('caller_unknown');
    expect(gateway.logLines.join('')).toContain(WEB);
  });

  it('a valid token does not make up for an invalid certificate', async () => {
    const { gateway, token } = await startBoth();
    const nobody = callers.issue('x', '*.test');
    const answer = await gateway.get(nobody, '/api/', { headers: { [OWN]: token } });
    expect(answer).toMatchObject({ status: 401, code: 'caller_unknown' });
  });
});

it.each<[string, (token: string) => string, string]>([
  [
    'Proxy-Authorization twice',
    (token) => `Proxy-Authorization: Bearer ${token}\r\n`.repeat(2),
    'caller_ambiguous',
  ],
  [
    'both fields',
    (token) => `Proxy-Authorization: Bearer ${token}\r\n${OWN}: ${token}\r\n`,
    'caller_ambiguous',
  ],
  ['a list of two', (token) => `Proxy-Authorization: Bearer ${token}, Bearer ${token}\r\n`, 'caller_unknown'],
  ['another scheme', (token) => `Proxy-Authorization: Basic ${token}\r\n`, 'caller_unknown'],
  ['_ for -', (token) => `Token_Sidecar_Caller: ${token}\r\n`, 'caller_ambiguous'],
  ['a folded line', (token) => `Proxy-Authorization: Bearer\r\n ${token}\r\n`, 'bad_request'],
  ['a blank before the colon', (token) => `Proxy-Authorization : Bearer ${token}\r\n`, 'bad_request'],
  [
    'Authorization, which is the upstream’s',
    (token) => `Authorization: Bearer ${token}\r\n`,
    'caller_unknown',
  ],
])('%s is refused', async (_, fields, code) => {
  const { gateway, token } = await startBoth();
  const answer = await gateway.sends(
    undefined,
    `GET /api/ HTTP/1.1\r\nHost: a\r\n${fields(token)}Connection: close\r\n\r\n`,
  );
  expect(answer.toLowerCase()).toContain(`token-sidecar-error: ${code}`);
  expect(answer).not.toContain(token);
  expect(gateway.upstream.requests).toEqual([]);
});

it('a token nominated by Connection counts, and leaves with nothing; one in trailers does neither', async () => {
  const { gateway, token } = await startBoth();
  const nominated = `GET /api/ HTTP/1.1\r\nHost: a\r\n${OWN}: ${token}\r\nConnection: close, ${OWN}\r\n\r\n`;
  expect(await gateway.sends(undefined, nominated)).toMatch(/^HTTP\/1.1 200 /);
  const chunked = 'Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\nx\r\n0\r\n';
  const trailers = [OWN, 'Proxy-Authorization', 'token_sidecar_caller', 'Proxy_Authorization']
    .map((name) => `${name}: ${token}\r\n`)
    .concat('\r\n')
    .join('');
  const head = 'POST /api/ HTTP/1.1\r\nHost: a\r\n';
  expect(await gateway.sends(undefined, `${head}${chunked}${trailers}`)).toMatch(/^HTTP\/1.1 401 /);
  expect(await gateway.sends(web, `${head}${chunked}${trailers}`)).toMatch(/^HTTP\/1.1 200 /);
  expect(gateway.upstream.requests).toHaveLength(2);
});

it('pipelined requests are each judged by their own token', async () => {
  const { gateway, token } = await startBoth();
  const one = (path: string, shown: string, last: string) =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\n${shown}${last}\r\n`;
  const text = await gateway.sends(
    undefined,
    one('/api/1', `${OWN}: ${token}\r\n`, '') +
      one('/api/2', '', '') +
      one('/api/3', `${OWN}: x\r\n`, 'Connection: close\r\n'),
  );
  expect(text.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401', 'HTTP/1.1 401']);
  expect(gateway.upstream.requests.map(({ url }) => url)).toEqual(['/api/1']);
});

it('an upstream connection that was authenticated for one caller serves no other caller', async () => {
  const users = new WeakMap<Socket, string>();
  const upstream = await startUpstream(({ socket, headers }, response) => {
    const user = /^NTLM (.+)/.exec(headers.authorization ?? '')?.[1];
    if (user !== undefined) users.set(socket, user);
    response.end(users.get(socket) ?? 'nobody');
  });
  const routes = [
    { name: 'api', match: { pathPrefix: '/' }, upstream: upstream.url, existingAuthorization: 'keep' },
  ];
  const other = { name: 'other', match: { serviceAccount: 'shop/other' }, allowedRoutes: ['api'] };
  const { cluster, gateway, token } = await startBoth({
    callers: [SHOP, other, WEB_ENTRY],
    file: { routes },
  });
  const others = cluster.token(cluster.pod('shop', 'other'));
  const one = (shown: string, ...lines: string[]) =>
    ['GET / HTTP/1.1', 'Host: a', `${OWN}: ${shown}`, ...lines, '', ''].join('\r\n');

  const text = await gateway.sends(
    undefined,
    [
      one(token, 'Authorization: NTLM alice'),
      one(token),
      one(others),
      one(token),
      one(others, 'Authorization: NTLM bob', 'Connection: close'),
    ].join(''),
  );

  const bodies = [...text.matchAll(/\r\n\r\n(?:5\r\n)?(alice|bob|nobody)/g)].map(([, body]) => body);
  expect(bodies).toEqual(['alice', 'alice', 'nobody', 'nobody', 'bob']);
  expect((await gateway.get(web, '/')).body).toBe('nobody');
});

it('TRACE does not echo a credential', async () => {
  const { gateway, token } = await startBoth();
  const traced = await gateway.sends(
    undefined,
    `TRACE /api/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n${OWN}: ${token}\r\nConnection: close\r\n\r\n`,
  );
  expect(traced).toMatch(/^HTTP\/1.1 200 /);
  expect(traced).not.toContain(token);
});

it('gRPC calls of either kind of caller get to a service, with its token and no proof', async () => {
  const service = createServer();
  const seen: IncomingHttpHeaders[] = [];
  service.on('stream', (stream: ServerHttp2Stream, headers) => {
    seen.push(headers);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.resume().on('end', () => stream.end('y'));
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  onTestFinished(() => void service.close());
  const upstream = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  const routes = [{ name: 'api', match: { pathPrefix: '/shop.Orders' }, upstream, protocol: 'h2c' }];
  const { gateway, token } = await startBoth({ file: { routes } });
  const call = {
    ':method': 'POST',
    ':path': '/shop.Orders/Get',
    'content-type': 'application/grpc',
    te: 'trailers',
  };
  const answers = [
    await askHttp2(await gateway.http2(undefined), { ...call, ...bearer(token) }, 'x'),
    await askHttp2(await gateway.http2(web), call, 'x'),
  ];
  expect(answers.map(({ body, trailers }) => [body, trailers['grpc-status']])).toEqual([
    ['y', '0'],
    ['y', '0'],
  ]);
  expect(seen.map(({ authorization }) => authorization)).toEqual(
    [1, 2].map(() => `Bearer ${UPSTREAM_TOKEN}`),
  );
  expect(
    seen.flatMap((headers) => Object.keys(headers)).filter((name) => /caller|proxy-/.test(name)),
  ).toEqual([]);
});

it('no client certificate is requested if none is configured', async () => {
  const { gateway, token } = await startBoth({
    gateway: { clientCaFile: undefined },
    callers: [SHOP],
  });
  expect(await gateway.get(web)).toMatchObject({ status: 401, code: 'caller_unknown' });
  expect((await gateway.get(web, '/api/', { headers: { [OWN]: token } })).status).toBe(200);
});
