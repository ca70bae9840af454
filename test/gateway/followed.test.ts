import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import { Agent } from 'node:https';
import { expect, it, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { ShiftedClock } from '../support/shifted-clock.ts';
import {
  askHttp2,
  callers,
  servingCertificate,
  startGateway,
  WEB,
  WEB_ENTRY,
  web,
} from './running-gateway.ts';

it('a replaced certificate is served at once; an invalid pair keeps the last good one, logged and counted', async () => {
  const gateway = await startGateway();
  const shown = async () => (await gateway.raw(web)).getPeerX509Certificate()?.fingerprint256;
  const before = await shown();

  await gateway.replace('tls.crt', servingCertificate().cert);
  await expect
    .poll(() => gateway.metric('gateway_file_reload_total{file="certificate",result="refused"}'))
    .toBe(1);
  expect(await shown()).toBe(before);
  expect(gateway.logLines.join('')).toContain('the last good one stays');

  const next = servingCertificate();
  await gateway.replace('tls.key', next.key);
  await gateway.replace('tls.crt', next.cert);
  await expect.poll(shown).not.toBe(before);
  expect((await gateway.get(web)).status).toBe(200);
});

it('a removed authority proves no caller, also on kept connections; an invalid bundle keeps the last good one', async () => {
  const gateway = await startGateway();
  const session = await gateway.http2(web);
  expect((await askHttp2(session)).status).toBe(200);
  await gateway.replace('ca.crt', 'no certificate');
  await expect
    .poll(() => gateway.metric('gateway_file_reload_total{file="client_ca",result="refused"}'))
    .toBe(1);
  expect((await askHttp2(session)).status).toBe(200);

  const other = createCertificateAuthority('others');
  await gateway.replace('ca.crt', `${callers.cert}${other.cert}`);
  await expect
    .poll(() => gateway.metric('gateway_file_reload_total{file="client_ca",result="loaded"}'))
    .toBe(2);
  expect((await askHttp2(session)).status).toBe(200);
  expect((await gateway.get(other.issue('web', WEB))).status).toBe(200);

  await gateway.replace('ca.crt', other.cert);
  await expect
    .poll(() => gateway.metric('gateway_file_reload_total{file="client_ca",result="loaded"}'))
    .toBe(3);
  const [goaway, closed] = [once(session, 'goaway'), once(session, 'close')];
  expect(await askHttp2(session)).toMatchObject({ status: 401, code: 'caller_unknown' });
  expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
  await closed;
  expect(await gateway.get(web)).toMatchObject({ status: 401, code: 'caller_unknown' });
});

it('a forged certificate with the name of an authority does not take its place', async () => {
  const gateway = await startGateway();
  const other = createCertificateAuthority('others');
  await gateway.replace('ca.crt', `${callers.cert}${other.cert}`);
  await expect
    .poll(() => gateway.metric('gateway_file_reload_total{file="client_ca",result="loaded"}'))
    .toBe(2);
  const forged = createCertificateAuthority('others').intermediate('callers');
  const session = await gateway.http2({ ...web, cert: `${web.cert}${forged.cert}` });
  expect(await askHttp2(session)).toMatchObject({
    status: 401,
    detail: expect.stringContaining('did not sign it'),
  });
  await gateway.replace('ca.crt', other.cert);
  await expect
    .poll(() => gateway.metric('gateway_file_reload_total{file="client_ca",result="loaded"}'))
    .toBe(3);
  expect(await askHttp2(session)).toMatchObject({ status: 401, code: 'caller_unknown' });
});

it('an expired certificate does not keep a removed authority', async () => {
  const gateway = await startGateway();
  const other = createCertificateAuthority('others');
  await gateway.replace('ca.crt', `${callers.cert}${other.cert}`);
  await expect
    .poll(() => gateway.metric('gateway_file_reload_total{file="client_ca",result="loaded"}'))
    .toBe(2);
  const below = callers.intermediate('below');
  const ended = other.reissue(below, new Date(Date.now() - 86_400_000));
  const { cert, key } = below.issue('web', WEB);
  const session = await gateway.http2({ cert: `${cert}${ended}${below.cert}`, key });
  expect((await askHttp2(session)).status).toBe(200);
  await gateway.replace('ca.crt', other.cert);
  await expect
    .poll(() => gateway.metric('gateway_file_reload_total{file="client_ca",result="loaded"}'))
    .toBe(3);
  expect(await askHttp2(session)).toMatchObject({ status: 401, code: 'caller_unknown' });
});

it('a changed policy applies to the next request of a kept connection, and metric series of removed entries end', async () => {
  const gateway = await startGateway();
  const session = await gateway.http2(web);
  expect((await askHttp2(session)).status).toBe(200);
  await gateway.change({ callers: [{ name: 'web2', match: { spiffe: WEB }, allowedRoutes: ['admin'] }] });
  expect(await askHttp2(session)).toMatchObject({ status: 403, code: 'caller_not_allowed' });
  expect((await askHttp2(session, { ':path': '/admin/' })).status).toBe(200);
  expect(await gateway.metric('gateway_requests_total{caller="web",decision="allowed"}')).toBeUndefined();
  expect(await gateway.metric('gateway_requests_in_flight{caller="web"}')).toBeUndefined();
  expect(await gateway.metric('gateway_requests_total{caller="web2",decision="allowed"}')).toBe(1);
});

it('a gateway with an expired certificate is not ready', async () => {
  const clock = new ShiftedClock();
  const gateway = await startGateway({ clock });
  expect(await gateway.ready()).toBe(200);
  clock.suspend(100 * 365 * 86_400_000);
  expect(await gateway.ready()).toBe(503);
});

it('a drain loses no request: GOAWAY over HTTP/2, Connection: close over HTTP/1.1, and new connections are accepted meanwhile', async () => {
  const held: ServerResponse[] = [];
  const gateway = await startGateway({
    gateway: { drainDelay: '300ms' },
    answer: (request, response) => {
      if (request.url === '/api/slow') held.push(response);
      else response.end('ok');
    },
  });
  const session = await gateway.http2(web);
  const goaway = new Promise<number>((resolve) => session.once('goaway', resolve));
  const slow = askHttp2(session, { ':path': '/api/slow' });
  await expect.poll(() => held.length).toBe(1);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const before = await gateway.get(web, '/api/', { agent });
  expect([before.status, before.headers['connection']]).toEqual([200, undefined]);

  const stopped = gateway.sidecar.stop();
  expect(await goaway).toBe(0);
  expect(await gateway.ready()).toBe(503);
  const after = await gateway.get(web, '/api/', { agent });
  expect([after.status, after.headers['connection']]).toEqual([200, 'close']);
  expect((await gateway.get(web)).status).toBe(200);
  for (const response of held) response.end('late');
  expect((await slow).body).toBe('late');
  await stopped;
});

it('an HTTP/2 connection that opens during the drain is served, and gets GOAWAY with its first request', async () => {
  const clock = new ShiftedClock();
  const gateway = await startGateway({ clock, gateway: { drainDelay: '60s' } });
  const stopped = gateway.sidecar.stop();
  await expect.poll(() => gateway.ready()).toBe(503);
  const session = await gateway.http2(web);
  const [goaway, closed] = [once(session, 'goaway'), once(session, 'close')];
  const answers = await Promise.all([askHttp2(session), askHttp2(session)]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
  await closed;
  // New ones are taken still.
  expect((await gateway.get(web)).headers['connection']).toBe('close');
  clock.advance(60_000);
  await stopped;
});

it('the drain delay is the one of the last loaded file', async () => {
  const clock = new ShiftedClock();
  const gateway = await startGateway({ clock, gateway: { drainDelay: '0ms' } });
  await gateway.change({ gateway: { drainDelay: '60s' }, file: { shutdown: { drainTimeout: '100s' } } });
  const stopped = gateway.sidecar.stop();
  await expect.poll(() => gateway.ready()).toBe(503);
  expect((await gateway.get(web)).status).toBe(200);
  clock.advance(60_000);
  await stopped;
});

it('a drain under load fails no request', async () => {
  const gateway = await startGateway({ gateway: { drainDelay: '200ms' }, callers: [WEB_ENTRY] });
  let isStopping = false;
  const statuses: number[] = [];
  /** As a client of a Service: it goes to another replica once this one is seen to end. */
  const ask = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (;;) {
      const answer = await gateway.get(web, '/api/', { agent });
      statuses.push(answer.status);
      if (isStopping && answer.headers['connection'] === 'close') break;
    }
    agent.destroy();
  };
  const askOverHttp2 = async () => {
    const session = await gateway.http2(web);
    let isLeaving = false;
    session.once('goaway', () => {
      isLeaving = true;
    });
    while (!isLeaving) statuses.push((await askHttp2(session)).status);
    session.close();
  };
  const clients = [ask(), ask(), ask(), ask(), askOverHttp2(), askOverHttp2()];
  await expect.poll(() => statuses.length).toBeGreaterThan(50);
  isStopping = true;
  const stopped = gateway.sidecar.stop();
  await Promise.all(clients);
  await stopped;
  expect(new Set(statuses)).toEqual(new Set([200]));
});
