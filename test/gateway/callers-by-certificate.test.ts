import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import { Agent } from 'node:https';
import { describe, expect, it } from 'vitest';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { ShiftedClock } from '../support/shifted-clock.ts';
import { askHttp2, callers, startGateway, UPSTREAM_TOKEN, WEB, WEB_ENTRY, web } from './running-gateway.ts';

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('over %s', (version) => {
  const tls = { minVersion: version, maxVersion: version };

  it('a caller gets to its route, with the token of the route, over HTTP/1.1 and HTTP/2', async () => {
    const gateway = await startGateway();
    expect((await gateway.get(web, '/api/one', { tls })).status).toBe(200);
    const session = await gateway.http2(web, tls);
    expect(session.alpnProtocol).toBe('h2');
    expect((await askHttp2(session, { ':path': '/api/two' })).status).toBe(200);
    expect(gateway.upstream.requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ['/api/one', `Bearer ${UPSTREAM_TOKEN}`],
      ['/api/two', `Bearer ${UPSTREAM_TOKEN}`],
    ]);
    expect(await gateway.metric('gateway_requests_total{caller="web",decision="allowed"}')).toBe(2);
    expect(
      gateway.logLines.filter((line) => line.includes('"msg":"request"') && line.includes(WEB)),
    ).toHaveLength(2);
  });

  it('a caller without a certificate is answered with that reason', async () => {
    const gateway = await startGateway();
    const answer = await gateway.get(undefined, '/api/', { tls });
    expect(answer).toMatchObject({ status: 401, code: 'caller_unknown' });
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="token-sidecar"');
    expect(gateway.upstream.requests).toEqual([]);
    expect(await gateway.metric('gateway_requests_total{caller="none",decision="unknown"}')).toBe(1);
  });

  it('a certificate of another authority proves nothing', async () => {
    const gateway = await startGateway();
    const stranger = createCertificateAuthority('callers').issue('web', WEB);
    expect(await gateway.get(stranger, '/api/', { tls })).toMatchObject({
      status: 401,
      code: 'caller_unknown',
      detail: expect.stringContaining('is not trusted'),
    });
    expect(gateway.upstream.requests).toEqual([]);
  });
});

it('an authority below the listed one proves callers, whose chain they show', async () => {
  const gateway = await startGateway();
  const below = callers.intermediate('below');
  const { cert, key } = below.issue('web', WEB);
  expect((await gateway.get({ cert: `${cert}${below.cert}`, key })).status).toBe(200);
  expect(await gateway.get({ cert, key })).toMatchObject({ status: 401, code: 'caller_unknown' });
});

it('another route, another caller and a caller without an entry are denied', async () => {
  const gateway = await startGateway({
    callers: [
      WEB_ENTRY,
      { name: 'all', match: { certificate: 'a.ops.example' }, allowedCredentials: ['default'] },
      { name: 'none', match: { certificate: 'idle' }, allowedRoutes: [] },
    ],
  });
  const codes = async (certificate: typeof web) => {
    const answers = await Promise.all(['/api/', '/admin/'].map((path) => gateway.get(certificate, path)));
    return answers.map(({ status, code }) => code ?? status);
  };
  expect(await codes(web)).toEqual([200, 'caller_not_allowed']);
  expect(await codes(callers.issue('x', 'a.ops.example'))).toEqual([200, 200]);
  expect(await codes(callers.issue('x', 'ops.example'))).toEqual([
    'caller_not_allowed',
    'caller_not_allowed',
  ]);
  expect(await codes(callers.issue('idle'))).toEqual(['caller_not_allowed', 'caller_not_allowed']);
  expect(await codes(callers.issue('a.ops.example', 'ops.example'))).toEqual([
    'caller_not_allowed',
    'caller_not_allowed',
  ]);
  expect(gateway.upstream.requests).toHaveLength(3);
  expect(gateway.logLines.find((line) => line.includes('"msg":"caller refused"'))).toContain(WEB);
});

it('DNS names are compared without regard to case, a common name as it is', async () => {
  const gateway = await startGateway({
    callers: [
      { name: 'dns', match: { certificate: 'A.Ops.Example' }, allowedRoutes: ['api'] },
      { name: 'cn', match: { certificate: 'Operator' }, allowedRoutes: ['api'] },
    ],
  });
  expect((await gateway.get(callers.issue('x', 'a.ops.example'))).status).toBe(200);
  expect((await gateway.get(callers.issue('x', 'a.OPS.example'))).status).toBe(200);
  expect((await gateway.get(callers.issue('Operator'))).status).toBe(200);
  expect(await gateway.get(callers.issue('operator'))).toMatchObject({ code: 'caller_not_allowed' });
});

it('a gRPC call is refused with a gRPC status', async () => {
  const gateway = await startGateway();
  const grpc = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' };
  const refused = await askHttp2(await gateway.http2(undefined), grpc, 'x');
  expect(refused.headers).toMatchObject({
    ':status': 200,
    'grpc-status': '16',
    'token-sidecar-error': 'caller_unknown',
  });
  const denied = await askHttp2(await gateway.http2(web), { ...grpc, ':path': '/admin/' }, 'x');
  expect(denied.headers).toMatchObject({ 'grpc-status': '7', 'token-sidecar-error': 'caller_not_allowed' });
});

it.each([
  ['two SPIFFE ids', callers.issue('web', WEB, `${WEB}-other`), 'more than one URI'],
  ['a SPIFFE id beside another URI', callers.issue('web', WEB, 'https://example.org'), 'more than one URI'],
  ['a SPIFFE id that climbs', callers.issue('web', 'spiffe://cluster.local/ns/x/../shop'), 'that is none'],
  ['a wildcard alone', callers.issue('web', '*.ops.example'), 'neither a SPIFFE id nor a DNS name'],
])('a certificate with %s is nobody', async (_, certificate, why) => {
  const gateway = await startGateway();
  const answer = await gateway.get(certificate);
  expect(answer).toMatchObject({ status: 401, code: 'caller_unknown' });
  expect(answer.detail).toContain(why);
});

it('a certificate that expires on a kept connection proves nothing from then on', async () => {
  const clock = new ShiftedClock();
  const gateway = await startGateway({ clock });
  const brief = callers.issueUntil(new Date(Date.now() + 3_600_000), 'web', WEB);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const session = await gateway.http2(brief);
  expect((await gateway.get(brief, '/api/', { agent })).status).toBe(200);
  expect((await askHttp2(session)).status).toBe(200);
  clock.suspend(3_600_000);
  expect(await gateway.get(brief, '/api/', { agent })).toMatchObject({ status: 401, code: 'caller_unknown' });
  expect(await askHttp2(session)).toMatchObject({ status: 401, code: 'caller_unknown' });
  agent.destroy();
});

it('over HTTP/1.1, a connection whose certificate has expired is closed with that answer', async () => {
  const clock = new ShiftedClock();
  const gateway = await startGateway({ clock });
  const socket = await gateway.raw(callers.issueUntil(new Date(Date.now() + 3_600_000), 'web', WEB));
  const ask = 'GET /api/ HTTP/1.1\r\nhost: gateway.test\r\n\r\n';
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(ask);
  await expect.poll(() => text).toMatch(/^HTTP\/1\.1 200 /);
  expect(text).not.toMatch(/^connection:/im);
  text = '';
  clock.suspend(3_600_000);
  const ended = once(socket, 'end');
  socket.write(ask + ask);
  await ended;
  expect(text.match(/HTTP\/1\.1 401 /g)).toHaveLength(1);
  expect(text).toMatch(/^connection: close\r$/im);
  expect(gateway.upstream.requests).toHaveLength(1);
});

it('over HTTP/2, a connection whose certificate has expired is closed once its requests are answered', async () => {
  const held: ServerResponse[] = [];
  const clock = new ShiftedClock();
  const gateway = await startGateway({
    clock,
    answer: (_, response) => void held.push(response),
  });
  const session = await gateway.http2(callers.issueUntil(new Date(Date.now() + 3_600_000), 'web', WEB));
  const goaway = once(session, 'goaway');
  const closed = once(session, 'close');
  const first = askHttp2(session);
  await expect.poll(() => held.length).toBe(1);
  clock.suspend(3_600_000);
  expect(await askHttp2(session)).toMatchObject({ status: 401, code: 'caller_unknown' });
  expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
  held[0]?.end('late');
  expect(await first).toMatchObject({ status: 200, body: 'late' });
  await closed;
});

it('a wall clock that is set back makes no certificate last longer', async () => {
  const clock = new ShiftedClock();
  const gateway = await startGateway({ clock });
  const session = await gateway.http2(callers.issueUntil(new Date(Date.now() + 60_000), 'web', WEB));
  expect((await askHttp2(session)).status).toBe(200);
  clock.stepBack(3_600_000);
  expect((await askHttp2(session)).status).toBe(200);
  clock.advance(60_000);
  expect(await askHttp2(session)).toMatchObject({ status: 401, code: 'caller_unknown' });
});

it('no TLS session is resumed, and no ticket is issued', async () => {
  const gateway = await startGateway();
  const first = await gateway.raw(web, { maxVersion: 'TLSv1.2' });
  const session = first.getSession();
  const ended = new Promise((resolve) => first.once('close', resolve));
  first.resume();
  first.renegotiate({ rejectUnauthorized: false }, () => {});
  await ended;
  const second = await gateway.raw(web, {
    maxVersion: 'TLSv1.2',
    ...(session === undefined ? {} : { session }),
  });
  expect(second.isSessionReused()).toBe(false);
});
