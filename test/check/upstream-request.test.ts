/** Requests to upstreams whose connection is made anew, and may come to another end than the one that was looked at. */

import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { about, type Destination } from '../../src/check/check-context.ts';
import { checkRequests } from '../../src/check/upstream-request.ts';
import type { EgressProxyConfig, Injection } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { startConnectProxy } from '../support/connect-proxy.ts';
import { refusingPort } from '../support/free-port.ts';
import { examination, lines } from './examined.ts';

const authority = createCertificateAuthority('Test Root');

async function caFile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'upstream-request-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'ca.crt');
  await writeFile(path, authority.cert);
  return path;
}

async function ask(egressProxy: EgressProxyConfig, withinMs = 5000, inject?: readonly Injection[]) {
  const config = await loadConfig({
    'token-url': { key: '--token-url', text: 'https://sso.example.com/token' },
    upstream: { key: '--upstream', text: 'https://api.example.com' },
  });
  const [route] = config.routes;
  if (route === undefined) throw new Error('there is no route');
  const to: Destination = {
    protocol: 'https',
    host: 'api.example.com',
    port: 443,
    tls: { caFile: await caFile() },
    offers: ['h2', 'http/1.1'],
    egressProxy,
    withinMs,
  };
  const policy = inject === undefined ? route : { ...route, inject };
  const probed = { to, policy, upstream: route.upstream, path: '/health', token: 'TOKEN' };
  return lines(await checkRequests(probed, about('route a'), examination()));
}

it('goes through the egress proxy', async () => {
  const server = createSecureServer(authority.issue('server', 'api.example.com'), (request, response) => {
    response.writeHead(request.headers.authorization === 'Bearer TOKEN' ? 200 : 401).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const proxy = await startConnectProxy({ host: '127.0.0.1', port });
  expect(await ask(proxy.config)).toEqual([
    'ok route a: upstream request: GET https://api.example.com/health without a token: 401',
    'ok route a: upstream request: GET https://api.example.com/health with the token: 200',
  ]);
});

it('puts the token in every place that the route says', async () => {
  const asked: unknown[] = [];
  const server = createSecureServer(authority.issue('server', 'api.example.com'), (request, response) => {
    asked.push([request.url, request.headers['x-key'], request.headers.authorization]);
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const proxy = await startConnectProxy({ host: '127.0.0.1', port });
  await ask(proxy.config, 5000, [
    { into: 'query', parameter: 'key' },
    { into: 'query', parameter: 'token' },
    { into: 'header', header: 'X-Key', scheme: undefined },
  ] as readonly Injection[]);
  expect(asked.at(-1)).toEqual(['/health?key=TOKEN&token=TOKEN', 'TOKEN', undefined]);
});

const failed = (why: RegExp) => [
  expect.stringMatching(
    new RegExp(`^failure route a: upstream request: GET https://api.example.com/health: ${why.source} → `),
  ),
];

it('an egress proxy that refuses now is a finding, in its own words', async () => {
  const answer = 'HTTP/1.1 503 Busy\r\n\r\n';
  const proxy = await startConnectProxy({ host: '127.0.0.1', port: 1 }, { answer });
  const said = /the egress proxy 127\.0\.0\.1:\d+ answered CONNECT with 503/;
  expect(await ask(proxy.config)).toEqual(failed(said));
});

it('an egress proxy that is gone now is a finding', async () => {
  const proxy: EgressProxyConfig = { host: '127.0.0.1', port: await refusingPort(), noProxy: [] };
  const said = /the egress proxy 127\.0\.0\.1:\d+ cannot be reached: ECONNREFUSED/;
  expect(await ask(proxy)).toEqual(failed(said));
});

it('an egress proxy that never answers leaves nothing open', async () => {
  const closed = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.on('error', () => undefined).on('close', () => closed.resolve());
    socket.resume();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  expect(await ask({ host: '127.0.0.1', port, noProxy: [] }, 100)).toEqual(failed(/.*within [\d.]+ m?s/));
  await closed.promise;
});

it('a tunnel that ends in the handshake is a finding', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.resetAndDestroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const proxy = await startConnectProxy({ host: '127.0.0.1', port });
  expect(await ask(proxy.config)).toEqual(failed(/\w+/));
});
