import { describe, expect, it } from 'vitest';
import { FIRST } from './fake-bearer.ts';
import { answer, get, message, ok, request } from './messages.ts';
import { answering, inTurn, overTls, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

const SPDY = ['Connection: Upgrade', 'Upgrade: SPDY/3.1', 'X-Stream-Protocol-Version: v4.channel.k8s.io'];
const SWITCHED = message('HTTP/1.1 101 Switching Protocols', [
  'Upgrade: SPDY/3.1',
  'Connection: Upgrade',
  'X-Stream-Protocol-Version: v4.channel.k8s.io',
]);

/** A tunnel that is open, with both of its ends. */
async function openTunnel() {
  const upstream = await startUpstream();
  const sidecar = await startSidecar({ upstream });
  const client = await sidecar.connect();
  client.send(get('/exec', ...SPDY));
  const arrived = await upstream.request();
  arrived.answer(SWITCHED);
  await client.head();
  return { upstream, sidecar, client, far: arrived.connection };
}

describe('an upgrade', () => {
  it.each([
    [
      'as kubectl exec asks for it',
      request('POST', '/exec?command=sh', [...SPDY, 'Content-Length: 0']),
      'SPDY/3.1',
    ],
    ['by GET', get('/exec', ...SPDY), 'SPDY/3.1'],
    ['nominated in a list', get('/', 'Connection: keep-alive, upgrade', 'Upgrade: raw/1'), 'raw/1'],
    ['to one of several protocols', get('/', 'Upgrade: a/1, b', 'connection: UPGRADE'), 'a/1, b'],
  ])('%s carries the token', async (_, bytes, protocol) => {
    const upstream = await startUpstream((arrived) => arrived.answer(SWITCHED));
    const sidecar = await startSidecar({ upstream });

    const switched = await sidecar.exchange(bytes);

    expect(switched.status).toBe(101);
    expect(switched.head.value('upgrade')).toBe('SPDY/3.1');
    expect(switched.head.value('connection')?.toLowerCase()).toBe('upgrade');
    expect(switched.head.value('x-stream-protocol-version')).toBe('v4.channel.k8s.io');
    const [arrived] = upstream.requests;
    expect(arrived?.head.values('authorization')).toEqual([FIRST]);
    expect(arrived?.head.value('host')).toBe(upstream.authority);
    expect(arrived?.head.value('upgrade')).toBe(protocol);
    expect(arrived?.head.value('connection')?.toLowerCase()).toBe('upgrade');
  });

  it.each([
    ['alone', 'h2c', undefined],
    ['in capitals, before another', 'H2C, raw/1', 'raw/1'],
  ])('to HTTP/2 is never offered to the upstream: %s', async (_, offered, passed) => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok('by HTTP/1.1')));
    const sidecar = await startSidecar({ upstream });
    const fields = [`Upgrade: ${offered}`, 'HTTP2-Settings: AAMAAABkAAQAAP__'];

    const answered = await sidecar.exchange(get('/', 'Connection: Upgrade, HTTP2-Settings', ...fields));
    await sidecar.exchange(get('/', 'Connection: Upgrade', ...fields));

    expect(answered.body).toBe('by HTTP/1.1');
    for (const { head } of upstream.requests) {
      expect(head.value('upgrade')).toBe(passed);
      expect(head.value('http2-settings')).toBeUndefined();
    }
    expect(upstream.requests).toHaveLength(2);
  });

  it('passes every byte in both directions', async () => {
    const { client, far } = await openTunnel();
    const bytes = String.fromCharCode(...Array(256).keys()).repeat(1000);

    client.send(bytes);
    far.send(bytes);

    expect(await far.received.exactly(bytes.length)).toBe(bytes);
    expect(await client.received.exactly(bytes.length)).toBe(bytes);
  });

  it('passes bytes that came together with the heads', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(`${get('/', ...SPDY)}early from the app`);
    const arrived = await upstream.request();
    arrived.answer(`${SWITCHED}early from the upstream`);

    await arrived.connection.received.contains('early from the app');
    await client.received.contains('early from the upstream');
    expect(arrived.connection.received.text.endsWith('\r\n\r\nearly from the app')).toBe(true);
    expect(client.received.text.endsWith('\r\n\r\nearly from the upstream')).toBe(true);
  });

  it.each(['app', 'upstream'] as const)(
    'half-closed by the %s still passes the other direction',
    async (who) => {
      const { client, far } = await openTunnel();
      const [ends, goesOn] = who === 'app' ? [client, far] : [far, client];

      ends.send('last words');
      ends.end();
      expect(await goesOn.received.rest()).toBe('last words');
      goesOn.send('still here');
      await ends.received.contains('still here');
      goesOn.end();

      expect(await ends.closed()).toBe('end');
    },
  );

  it('passes on the half-close of an app that half-closed before the 101', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(`${get('/exec', ...SPDY)}all there is`).end();
    const arrived = await upstream.request();
    // Answered by the sidecar itself: by then it has seen the end.
    await sidecar.exchange(get('/', 'token-sidecar-hop: wire-instance', 'Connection: close'));

    arrived.answer(SWITCHED);

    await client.head();
    expect(await arrived.connection.received.rest()).toBe('all there is');
    arrived.connection.send('bye');
    arrived.connection.end();
    expect(await client.received.rest()).toBe('bye');
  });

  it.each(['app', 'upstream'] as const)('whose %s is killed is closed on the other side', async (who) => {
    const { client, far, sidecar } = await openTunnel();
    const [killed, other] = who === 'app' ? [client, far] : [far, client];

    killed.reset();

    // TLS has an end of its own, which is not sent; what stands below it is the system's affair.
    if (who === 'app' && overTls) await other.closed();
    else expect(await other.closed()).toBe('reset');
    await sidecar.idle();
  });

  it('is counted once with 101 when it ends', async () => {
    const { client, far, sidecar } = await openTunnel();
    expect(await sidecar.metric('proxy_requests_in_flight')).toBe(1);

    client.end();
    far.end();
    await sidecar.idle();

    expect(await sidecar.metric('proxy_requests_total', { code: '101', method: 'GET' })).toBe(1);
  });
});

describe('an upgrade that the upstream refuses', () => {
  it.each([
    ['refused', answer(403, 'no'), 403],
    ['ignored', ok('plain'), 200],
    ['answered 426', answer(426, 'other protocol', 'Upgrade: other', 'Connection: Upgrade'), 426],
  ])('with %s is answered, and the connection goes on', async (_, bytes, status) => {
    const upstream = await startUpstream(inTurn(answering(bytes), answering(ok('next'))));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    expect((await client.send(get('/', ...SPDY)).response()).status).toBe(status);

    expect((await client.send(get('/next')).response()).body).toBe('next');
  });

  it('never lets bytes after the head through unparsed', async () => {
    const upstream = await startUpstream(answering(ok('not granted')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(get('/', ...SPDY) + get('/smuggled', 'Authorization: Basic YTpi'));
    expect((await client.response()).body).toBe('not granted');
    client.end();
    await client.closed();
    await sidecar.fence();

    // Taken for the next request, or dropped with the connection: either is safe, raw bytes are not.
    expect(upstream.text).not.toContain('YTpi');
    for (const { head } of upstream.requests) expect(head.values('authorization')).toEqual([FIRST]);
  });
});
