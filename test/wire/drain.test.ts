import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

const LONG_MS = 15_000;

describe('draining', () => {
  it('ends at once when no request is in flight, closing idle connections on both sides', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    await client.send(get('/')).response();

    await sidecar.proxy.drain(LONG_MS);

    expect(await client.closed()).toBe('end');
    await upstream.connections[0]?.closed();
    const refused = connect(sidecar.address.port, sidecar.address.host);
    const [error] = await once(refused, 'error');
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('lets requests in flight finish', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const [waiting, reading] = await Promise.all([sidecar.connect(), sidecar.connect()]);
    waiting.send(get('/waiting'));
    const first = await upstream.request();
    reading.send(get('/reading'));
    const second = await upstream.request();
    second.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('half ')));
    await reading.received.contains('half ');

    const drained = sidecar.proxy.drain(LONG_MS);
    first.answer(ok('whole'));
    second.answer(chunk('and half') + LAST_CHUNK);

    expect((await waiting.response()).body).toBe('whole');
    expect((await reading.response()).body).toBe('half and half');
    await drained;
    expect([await waiting.closed(), await reading.closed()]).toEqual(['end', 'end']);
  });

  it('serves no new request on an open connection', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const [busy, half] = await Promise.all([sidecar.connect(), sidecar.connect()]);
    busy.send(get('/busy'));
    const arrived = await upstream.request();
    half.send('GET /late HTTP/1.1\r\n');
    // The first line is there: the sidecar reads connections in turn.
    await sidecar.exchange(get('/x', 'X : refused'));

    const drained = sidecar.proxy.drain(LONG_MS);
    half.send('Host: app.test\r\n\r\n');

    const refused = await half.response();
    expectProblem(refused, 'draining');
    expect(refused.head.value('connection')).toBe('close');
    await half.closed();
    arrived.answer(ok('served'));
    expect((await busy.response()).body).toBe('served');
    await drained;
    expect(upstream.targets).toEqual(['/busy']);
  });

  it('ends when the last app that is served has left', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const [idle, busy] = await Promise.all([sidecar.connect(), sidecar.connect()]);
    busy.send(get('/'));
    await upstream.request();
    const drained = sidecar.proxy.drain(LONG_MS);

    busy.destroy();

    await drained;
    expect(await idle.closed()).toBe('end');
  });

  it('cuts the remaining requests when its time is up', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const [hanging, tunnelled] = await Promise.all([sidecar.connect(), sidecar.connect()]);
    hanging.send(get('/'));
    const first = await upstream.request();
    tunnelled.send(get('/', 'Connection: Upgrade', 'Upgrade: raw'));
    const second = await upstream.request();
    second.answer(message('HTTP/1.1 101 Switching Protocols', ['Connection: Upgrade', 'Upgrade: raw']));
    await tunnelled.head();

    await sidecar.proxy.drain(100);

    await Promise.all([hanging.closed(), tunnelled.closed()]);
    await Promise.all([first.connection.closed(), second.connection.closed()]);
    await sidecar.idle();
  });

  it('can be requested again with a shorter time', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/'));
    await upstream.request();

    await Promise.all([sidecar.proxy.drain(LONG_MS * 10), sidecar.proxy.drain(0)]);
    await sidecar.proxy.drain(0);

    await client.closed();
  });

  it('also cuts connections that were over the connection limit and do not close', async () => {
    const clock = new ManualClock();
    const sidecar = await startSidecar({ clock, limits: { maxConnections: 1 } });
    await sidecar.connect();
    const refused = await sidecar.connect();
    expectProblem(await refused.response(), 'overloaded');

    const drained = sidecar.proxy.drain(0);
    await clock.advance(0);

    await drained;
  });
});
