import { describe, expect, it } from 'vitest';
import { ShiftedClock } from '../support/shifted-clock.ts';
import { get, ok, request } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

const BOUND_MS = 60_000;

describe('what arrived in time while the process was stopped does not time out', () => {
  it('the rest of a head', async () => {
    const upstream = await startUpstream(answering(ok('in time')));
    const clock = new ShiftedClock();
    const sidecar = await startSidecar({ upstream, clock, limits: { headerTimeoutMs: BOUND_MS } });
    const client = await sidecar.connect();
    client.send('GET / HTTP/1.1\r\n');
    await sidecar.fence();

    client.send('Host: app.test\r\n\r\n');
    clock.advance(2 * BOUND_MS);

    expect((await client.response()).body).toBe('in time');
  });

  it('the rest of an upload', async () => {
    const upstream = await startUpstream(answering(ok('whole')));
    const clock = new ShiftedClock();
    const sidecar = await startSidecar({
      upstream,
      clock,
      route: { timeouts: { idleMs: BOUND_MS } },
    });
    const client = await sidecar.connect();
    client.send(`${request('POST', '/', ['Content-Length: 6'])}abc`);
    const arrived = await upstream.request();
    await arrived.connection.received.contains('abc');

    client.send('def');
    clock.advance(2 * BOUND_MS);

    expect((await client.response()).body).toBe('whole');
  });

  it('an answer', async () => {
    const upstream = await startUpstream();
    const clock = new ShiftedClock();
    const sidecar = await startSidecar({
      upstream,
      clock,
      route: { timeouts: { responseMs: BOUND_MS } },
    });
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();

    arrived.answer(ok('in time'));
    clock.advance(2 * BOUND_MS);

    expect((await client.response()).body).toBe('in time');
  });
});
