import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import { Agent } from 'node:https';
import { connect } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { CallerBounds } from '../../src/gateway/caller-bounds.ts';
import { UnauthenticatedConnections } from '../../src/gateway/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ShiftedClock } from '../support/shifted-clock.ts';
import { until } from '../support/until.ts';
import { askHttp2, callers, startGateway, WEB_ENTRY, web } from './running-gateway.ts';

const MAX_UNAUTHENTICATED = 512;

const HANDSHAKE_MS = 10_000;

const OTHER = 'spiffe://cluster.local/ns/shop/sa/other';
const other = callers.issue('other', OTHER);
const OTHER_ENTRY = { name: 'other', match: { spiffe: OTHER }, allowedRoutes: ['api'] };

const SECONDLY = { inFlight: 10, requestsPerSecond: 2, burst: 3 };

it('a caller with as much in flight as it may have is held back, and the others are served', async () => {
  const held: ServerResponse[] = [];
  const gateway = await startGateway({
    callers: [{ ...WEB_ENTRY, limits: { inFlight: 2 } }, OTHER_ENTRY],
    answer: (request, response) => {
      if (request.url === '/api/slow') held.push(response);
      else response.end('ok');
    },
  });
  const slow = await gateway.http2(web);
  const first = [askHttp2(slow, { ':path': '/api/slow' }), askHttp2(slow, { ':path': '/api/slow' })];
  await expect.poll(() => held.length).toBe(2);

  const third = await gateway.get(web);
  expect(third).toMatchObject({ status: 429, code: 'too_many_requests' });
  expect(third.headers['retry-after']).toBe('1');
  expect((await gateway.get(other)).status).toBe(200);
  expect(await gateway.metric('gateway_requests_in_flight{caller="web"}')).toBe(2);
  expect(await gateway.metric('gateway_requests_total{caller="web",decision="held_back"}')).toBe(1);
  for (const response of held) response.end('late');
  expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200]);
  expect((await gateway.get(web)).status).toBe(200);
  await expect.poll(() => gateway.metric('gateway_requests_in_flight{caller="web"}')).toBe(0);
});

it('a caller that asks more often than it may is told when to come back', async () => {
  const clock = new ShiftedClock();
  const gateway = await startGateway({
    clock,
    callers: [{ ...WEB_ENTRY, limits: { requestsPerSecond: 1, burst: 2 } }, OTHER_ENTRY],
  });
  const session = await gateway.http2(web);
  // At once, however slow the machine is: time goes on by itself.
  const answers = await Promise.all(Array.from({ length: 40 }, () => askHttp2(session)));
  const heldBack = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(2);
  expect(heldBack.length).toBeGreaterThan(0);
  expect(heldBack[0]).toMatchObject({ code: 'too_many_requests', headers: { 'retry-after': '1' } });
  expect((await gateway.get(other)).status).toBe(200);
  clock.advance(2000);
  expect((await askHttp2(session)).status).toBe(200);
});

it.each(['one connection of HTTP/2', 'a connection of HTTP/1.1 for each request'])(
  'a flood by one caller, over %s, does not keep another from being served',
  async (over) => {
    const gateway = await startGateway({
      callers: [{ ...WEB_ENTRY, limits: { inFlight: 4, requestsPerSecond: 5 } }, OTHER_ENTRY],
    });
    const session = over === 'one connection of HTTP/2' ? await gateway.http2(web) : undefined;
    const flooded = Promise.all(
      Array.from({ length: 45 }, () => (session === undefined ? gateway.get(web) : askHttp2(session))),
    );
    const served = await Promise.all(Array.from({ length: 10 }, () => gateway.get(other)));
    expect(served.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    const statuses = new Set((await flooded).map(({ status }) => status));
    expect([...statuses].sort()).toEqual([200, 429]);
  },
);

it('a caller has a bounded number of connections; each counts from its first request', async () => {
  const gateway = await startGateway({ callers: [{ ...WEB_ENTRY, limits: { connections: 2 } }] });
  const agents = [0, 1].map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
  for (const agent of agents) expect((await gateway.get(web, '/api/', { agent })).status).toBe(200);
  expect(await gateway.get(web)).toMatchObject({ status: 429, code: 'too_many_requests' });
  for (const agent of agents) expect((await gateway.get(web, '/api/', { agent })).status).toBe(200);
  agents[0]?.destroy();
  await expect.poll(async () => (await gateway.get(web)).status).toBe(200);
  agents[1]?.destroy();
});

it('a caller that cancels request after request is held back on every connection, and other callers are served', async () => {
  const gateway = await startGateway({
    callers: [WEB_ENTRY, OTHER_ENTRY],
    answer: ({ url }, response) => {
      if (url === '/api/') response.end('ok');
    },
  });
  const begun = () => gateway.upstream.requests.filter(({ url }) => url === '/api/slow').length;
  let answer = await gateway.get(web);
  expect(answer.status).toBe(200);
  while (answer.status === 200) {
    const session = await gateway.http2(web);
    const slow = Array.from({ length: 100 }, () => session.request({ ':path': '/api/slow' }));
    const heldBack = slow.map((stream) =>
      once(
        stream.on('error', () => {}),
        'response',
      ),
    );
    const target = begun() + slow.length;
    await Promise.race([until(() => begun() === target), ...heldBack]);
    for (const stream of slow) stream.close(constants.NGHTTP2_CANCEL);
    session.close();
    answer = await gateway.get(web);
  }
  expect(answer).toMatchObject({ status: 429, code: 'too_many_requests' });
  expect(begun()).toBeGreaterThanOrEqual(1000);
  expect((await gateway.get(other)).status).toBe(200);
});

it.each([
  ['one caller has a quarter of them', undefined, [200, 200, 429, 429, 429, 429, 429, 429], 200],
  ['a caller that may have all leaves none', { connections: 8 }, Array(8).fill(200), undefined],
])('half of the memory bounds connections, and %s', async (_, limits, statuses, ofAnother) => {
  // Of a container: room for eight.
  const constrained = vi.spyOn(process, 'constrainedMemory').mockReturnValue(2 ** 20);
  onTestFinished(() => constrained.mockRestore());
  const entry = limits === undefined ? WEB_ENTRY : { ...WEB_ENTRY, limits };
  const gateway = await startGateway({ callers: [entry, OTHER_ENTRY] });
  const agents = statuses.map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
  onTestFinished(() => {
    for (const agent of agents) agent.destroy();
  });
  const answers: number[] = [];
  for (const agent of agents) answers.push((await gateway.get(web, '/api/', { agent })).status);
  expect(answers).toEqual(statuses);
  const another = await gateway.get(other).catch(() => undefined);
  expect(another?.status).toBe(ofAnother);
  const refused = gateway.logLines.filter((line) => line.includes('connections refused: too many are open'));
  expect(refused).toHaveLength(ofAnother === undefined ? 1 : 0);
});

it('a handshake that takes too long is ended', async () => {
  const clock = new ShiftedClock();
  const gateway = await startGateway({ clock });
  const kept = await gateway.http2(web);
  expect((await askHttp2(kept)).status).toBe(200);
  const slow = Array.from({ length: 40 }, () => connect(gateway.port, '127.0.0.1'));
  onTestFinished(() => {
    for (const socket of slow) socket.destroy();
  });
  const ends = slow.map((socket) => {
    socket.on('error', () => {});
    socket.resume();
    return once(socket, 'close');
  });
  await Promise.all(slow.map((socket) => once(socket, 'connect')));
  // Half of a ClientHello's head.
  for (const socket of slow) socket.write(Buffer.from([22, 3, 1]));
  expect((await gateway.get(web)).status).toBe(200);
  clock.advance(HANDSHAKE_MS);
  await Promise.all(ends);
  expect(await gateway.metric('gateway_connections_total{result="timeout"}')).toBe(40);
  expect((await askHttp2(kept)).status).toBe(200);
});

it('silent connections displace each other, and leave room for callers within limits.connections', async () => {
  const gateway = await startGateway({ file: { limits: { connections: 8 } } });
  const kept = await gateway.http2(web);
  expect((await askHttp2(kept)).status).toBe(200);
  const ends: Promise<unknown>[] = [];
  for (let n = 0; n < 12; n++) {
    const socket = connect(gateway.port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    socket.resume();
    ends.push(once(socket, 'close'));
    await once(socket, 'connect');
    // A quarter of 8 is for strangers.
    if (n >= 2) await ends[n - 2];
  }
  expect((await gateway.get(web)).status).toBe(200);
  expect((await askHttp2(kept)).status).toBe(200);
  expect(await gateway.metric('gateway_connections_total{result="displaced"}')).toBe(11);
  await ends[10];
});

it('a connection above the bound for unidentified callers replaces the oldest of the address that has most', () => {
  const ended: string[] = [];
  let displaced = 0;
  const strangers = new UnauthenticatedConnections(
    () => 4,
    () => {
      displaced += 1;
    },
  );
  const admit = (address: string, name: string) => strangers.admit(address, () => void ended.push(name));
  admit('honest', 'h1');
  const known = admit('flood', 'f1');
  admit('flood', 'f2');
  admit('flood', 'f3');
  known();
  known();
  admit('flood', 'f4');
  expect([strangers.size, ended]).toEqual([4, []]);
  admit('flood', 'f5');
  admit('other', 'o1');
  expect(ended).toEqual(['f2', 'f3']);
  expect([strangers.size, displaced]).toEqual([4, 2]);
  expect(MAX_UNAUTHENTICATED).toBe(512);
});

it('the number of remembered callers is bounded, and idle ones are forgotten first', () => {
  const bounds = new CallerBounds(new ManualClock(), () => 10, 3);
  const end = bounds.begin('busy', SECONDLY, true);
  for (const key of ['a', 'b', 'c', 'd']) bounds.begin(key, SECONDLY, false)();
  expect(bounds.size).toBe(3);
  const ends = ['e', 'f'].map((key) => bounds.begin(key, SECONDLY, true));
  expect(() => bounds.begin('g', SECONDLY, false)).toThrow('3 callers have something open');
  end();
  expect(() => bounds.begin('g', SECONDLY, false)).toThrow('no more are told apart');
  bounds.connectionClosed('busy');
  bounds.begin('g', SECONDLY, false)();
  for (const done of ends) done();
  expect(bounds.size).toBe(3);
});

it('an allowance fills with time, up to its burst, and says how long until the next', async () => {
  const clock = new ManualClock();
  const bounds = new CallerBounds(clock, () => 10);
  const ask = () => bounds.begin('a', SECONDLY, false)();
  for (let asked = 0; asked < 3; asked++) ask();
  expect(ask).toThrow('2 requests in a second');
  await clock.advance(499);
  expect(ask).toThrow(expect.objectContaining({ retryAfterSeconds: 1 }));
  await clock.advance(1);
  ask();
  expect(ask).toThrow();
  await clock.advance(60_000);
  for (let asked = 0; asked < 3; asked++) ask();
  expect(ask).toThrow();
});

it('requests in flight when the allowance for cancels is used up are charged, too', async () => {
  const clock = new ManualClock();
  const bounds = new CallerBounds(clock, () => 10);
  const limits = { inFlight: 100, burst: 1 };
  const begin = () => bounds.begin('a', limits, false);
  for (let count = 0; count < 999; count++) {
    const end = begin();
    bounds.brokenOff('a');
    end();
  }
  for (const end of Array.from({ length: 100 }, begin)) {
    bounds.brokenOff('a');
    end();
  }
  await clock.advance(1900);
  expect(begin).toThrow('broken off 1000 requests');
  // 50 a second, for 99 and one more.
  await clock.advance(120);
  begin()();
});

it('the allowance for cancelled requests fills again with time', async () => {
  const clock = new ManualClock();
  const bounds = new CallerBounds(clock, () => 10);
  const limits = { inFlight: 10, burst: 1 };
  const breakOff = () => {
    const end = bounds.begin('a', limits, false);
    bounds.brokenOff('a');
    end();
  };
  for (let count = 0; count < 1000; count++) breakOff();
  expect(breakOff).toThrow('broken off 1000 requests');
  bounds.begin('b', limits, false)();
  await clock.advance(20);
  breakOff();
  expect(breakOff).toThrow(expect.objectContaining({ retryAfterSeconds: 1 }));
});
