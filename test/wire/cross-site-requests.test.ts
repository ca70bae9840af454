import { describe, expect, it } from 'vitest';
import { FIRST } from './fake-bearer.ts';
import { message, ok } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { forwardTo, routeTo, type Sidecar, type SidecarSettings, startSidecar } from './sidecar.ts';

/** What a request says of itself, given the port of the listener. */
type Fields = (port: number) => readonly string[];

async function startRefusing(settings: Omit<SidecarSettings, 'crossSiteRequests'> = {}) {
  const upstream = await startUpstream(answering(ok('with a token')));
  const routes = [
    routeTo(upstream, { name: 'named', match: { host: 'api.example.test', pathPrefix: '/named' } }),
    routeTo(upstream),
  ];
  const sidecar = await startSidecar({ routes, ...settings, crossSiteRequests: 'refuse' });
  return { upstream, sidecar };
}

function send(sidecar: Sidecar, fields: Fields, startLine = 'GET / HTTP/1.1') {
  return sidecar.exchange(message(startLine, fields(sidecar.address.port)), startLine.split(' ')[0]);
}

describe('a program, or a page of the same site, is answered', () => {
  it.each<[string, Fields]>([
    ['by localhost', (port) => [`Host: localhost:${port}`]],
    ['by a name below localhost', (port) => [`Host: api.localhost:${port}`]],
    ['by address', (port) => [`Host: 127.0.0.1:${port}`]],
    ['by an address of another machine', (port) => [`Host: 10.1.2.3:${port}`]],
    ['by an IPv6 address', (port) => [`Host: [::1]:${port}`]],
    ['by the name of a route', () => ['Host: API.example.test.']],
    ['typed by a person', (port) => [`Host: localhost:${port}`, 'Sec-Fetch-Site: none']],
    [
      'from a page that came from here',
      (port) => [
        `Host: localhost:${port}`,
        'Sec-Fetch-Site: same-origin',
        `Origin: http://localhost:${port}`,
      ],
    ],
    ['from such a page, at the scheme’s own port', () => ['Host: localhost:80', 'Origin: http://localhost']],
  ])('%s', async (_, fields) => {
    const { upstream, sidecar } = await startRefusing();
    expect((await send(sidecar, fields)).body).toBe('with a token');
    expect(upstream.requests[0]?.head.values('authorization')).toEqual([FIRST]);
  });

  it('when it names the host of an upstream', async () => {
    const upstream = await startUpstream(answering(ok('with a token')));
    const elsewhere = { match: { pathPrefix: '/b' }, upstream: { host: 'upstream.example.test' } };
    const routes = [routeTo(upstream), routeTo(upstream, { name: 'b', ...elsewhere })];
    const sidecar = await startSidecar({ routes, crossSiteRequests: 'refuse' });
    expect((await send(sidecar, () => ['Host: upstream.example.test'])).body).toBe('with a token');
  });

  it('when it uses HTTP/1.0 without Host', async () => {
    const { sidecar } = await startRefusing();
    expect((await send(sidecar, () => [], 'GET / HTTP/1.0')).body).toBe('with a token');
  });
});

describe('a request from a page of another site is refused and does not reach the upstream', () => {
  it.each<[string, Fields, string?]>([
    ['a fetch', (port) => [`Host: localhost:${port}`, 'Sec-Fetch-Site: cross-site']],
    ['a neighbour on another port', (port) => [`Host: localhost:${port}`, 'Sec-Fetch-Site: same-site']],
    [
      'a link that is followed',
      (port) => [`Host: localhost:${port}`, 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate'],
    ],
    [
      'a form of a browser without fetch metadata',
      (port) => [`Host: localhost:${port}`, 'Origin: https://evil.example.test', 'Content-Length: 0'],
      'POST / HTTP/1.1',
    ],
    ['a sandboxed page', (port) => [`Host: localhost:${port}`, 'Origin: null']],
    ['a page of another port', (port) => [`Host: localhost:${port}`, 'Origin: http://localhost:8080']],
    ['a page of another scheme', (port) => [`Host: localhost:${port}`, `Origin: https://localhost:${port}`]],
    [
      'a preflight',
      (port) => [`Host: localhost:${port}`, 'Origin: https://evil.example.test'],
      'OPTIONS / HTTP/1.1',
    ],
    [
      'a WebSocket',
      (port) => [
        `Host: localhost:${port}`,
        'Origin: https://evil.example.test',
        'Connection: Upgrade',
        'Upgrade: websocket',
      ],
    ],
    [
      'fields that are repeated',
      (port) => [
        `Host: localhost:${port}`,
        `Origin: http://localhost:${port}`,
        'Origin: https://evil.example.test',
      ],
    ],
    [
      'a page that names the fields in Connection',
      (port) => [`Host: localhost:${port}`, 'Sec-Fetch-Site: cross-site', 'Connection: sec-fetch-site'],
    ],
    ['HEAD', (port) => [`Host: localhost:${port}`, 'Sec-Fetch-Site: cross-site'], 'HEAD / HTTP/1.1'],
  ])('%s', async (_, fields, startLine) => {
    const { upstream, sidecar } = await startRefusing();
    const answer = await send(sidecar, fields, startLine);
    expect(answer.status).toBe(403);
    expect(answer.head.value('token-sidecar-error')).toBe('cross_site_request');
    expect(upstream.connections).toHaveLength(0);
  });

  it('with a problem that quotes no value, is counted, and leaves the connection open', async () => {
    const { sidecar } = await startRefusing();
    const client = await sidecar.connect();
    const site = message('GET / HTTP/1.1', ['Host: localhost', 'Origin: https://evil.example.test']);
    const refused = await client.send(site).response();
    expectProblem(refused, 'cross_site_request');
    expect(refused.body).not.toContain('evil');
    expect(await sidecar.metric('proxy_errors_total', { route: 'api', error: 'cross_site_request' })).toBe(1);
    expect((await client.send(message('GET / HTTP/1.1', ['Host: localhost'])).response()).status).toBe(200);
  });
});

describe('a request for a name that an attacker made resolve to the sidecar (DNS rebinding) is refused', () => {
  it.each([
    'rebind.evil.example.test',
    'localhost.evil.example.test',
    '127.0.0.1.evil.example.test',
    'evil.example.test.',
    'sub.api.example.test',
    'sidecar',
    '.',
  ])('%s', async (host) => {
    const { upstream, sidecar } = await startRefusing();
    const port = sidecar.address.port;
    const own = [`Host: ${host}:${port}`, `Origin: http://${host}:${port}`, 'Sec-Fetch-Site: same-origin'];
    expectProblem(await send(sidecar, () => own), 'cross_site_request');
    expectProblem(await send(sidecar, () => [`Host: ${host}`]), 'cross_site_request');
    expect(upstream.connections).toHaveLength(0);
  });

  it('also when the upstreams are IPv6 addresses', async () => {
    const route = routeTo({ address: { host: '::1', port: 1 } });
    const sidecar = await startSidecar({ routes: [route], crossSiteRequests: 'refuse' });
    expectProblem(await send(sidecar, () => ['Host: .']), 'cross_site_request');
  });
});

describe('a browser that uses the sidecar as its proxy', () => {
  async function startForward(settings: Parameters<typeof forwardTo>[2] = {}) {
    const upstream = await startUpstream(answering(ok('hello')));
    const forwardProxy = forwardTo(upstream, {}, settings);
    const sidecar = await startSidecar({ forwardProxy, crossSiteRequests: 'refuse' });
    const ask = (...fields: string[]) =>
      send(
        sidecar,
        () => [`Host: ${upstream.authority}`, ...fields],
        `GET http://${upstream.authority}/ HTTP/1.1`,
      );
    return { upstream, sidecar, ask };
  }

  it('gets what a page requests from its own site', async () => {
    const { upstream, ask } = await startForward();
    expect((await ask(`Origin: http://${upstream.authority}`)).body).toBe('hello');
    expect((await ask()).body).toBe('hello');
  });

  it('gets nothing from a listed host for a page of another site', async () => {
    const { upstream, ask } = await startForward();
    expectProblem(await ask('Origin: http://evil.example.test'), 'cross_site_request');
    expectProblem(await ask('Sec-Fetch-Site: cross-site'), 'cross_site_request');
    expect(upstream.connections).toHaveLength(0);
  });

  it('may request anything from hosts without a token', async () => {
    const upstream = await startUpstream(answering(ok('hello')), 'plain');
    const forwardProxy = forwardTo(upstream, { host: 'listed.example.test' }, { otherHosts: 'pass' });
    const sidecar = await startSidecar({ forwardProxy, crossSiteRequests: 'refuse' });
    const fields = [`Host: ${upstream.authority}`, 'Origin: http://evil.example.test'];
    const passed = await send(sidecar, () => fields, `GET http://${upstream.authority}/ HTTP/1.1`);
    expect(passed.body).toBe('hello');
    expect(upstream.requests[0]?.head.values('authorization')).toEqual([]);
  });

  it('gets tunnels, in which no token is sent', async () => {
    const { upstream, sidecar } = await startForward({ connect: 'tunnel' });
    const client = await sidecar.connect();
    client.send(message(`CONNECT ${upstream.authority} HTTP/1.1`, ['Host: elsewhere.example.test:443']));
    expect((await client.head()).status).toBe(200);
  });
});

it('cross-site requests pass when refusing them is turned off', async () => {
  const upstream = await startUpstream(answering(ok('hello')));
  const sidecar = await startSidecar({ upstream });
  const fields = ['Host: rebind.evil.example.test', 'Origin: null', 'Sec-Fetch-Site: cross-site'];
  expect((await send(sidecar, () => fields)).body).toBe('hello');
});
