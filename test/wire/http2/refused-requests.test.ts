import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { get, ok } from '../messages.ts';
import { answering, startUpstream } from '../raw-upstream.ts';
import { startSidecar } from '../sidecar.ts';
import { Code, ping, reset, Type, windowUpdate } from './frames.ts';
import { expectHttp2Problem } from './problem.ts';
import { connectHttp2, requestFields } from './raw-http2-client.ts';

const WINDOW_BYTES = 65_535;
const TOO_LONG = `/${'p'.repeat(9000)}`;

/** A client whose connection has no window left, and whose next request is refused: the answer waits. */
async function startWaiting(settings: Parameters<typeof startSidecar>[0] = {}) {
  const upstream = await startUpstream(answering(ok('x'.repeat(WINDOW_BYTES))));
  const sidecar = await startSidecar({ upstream, ...settings });
  const client = await connectHttp2(sidecar, { updatesWindows: false });
  await client.answer(client.get('/eat'));
  const refused = client.get(TOO_LONG);
  await client.head(refused);
  return { sidecar, client, refused };
}

describe('a refused HTTP/2 request whose answer waits for the connection window', () => {
  it('is answered once the window opens', async () => {
    const { client, refused } = await startWaiting();
    client.send(windowUpdate(0, WINDOW_BYTES));
    expectHttp2Problem(await client.answer(refused), 'uri_too_long');
  });

  it('and that the app resets is not answered afterwards', async () => {
    const { sidecar, client, refused } = await startWaiting();
    client.send(reset(refused, Code.CANCEL), windowUpdate(0, WINDOW_BYTES));
    await client.fence();
    expect(client.soFar(refused)).toMatchObject({ body: '', ended: false });
    expect((await client.answer(client.get('/next'))).status).toBe(200);
    expect((await sidecar.exchange(get('/other'))).status).toBe(200);
  });

  it('and that proves malformed after its end is not answered afterwards', async () => {
    const { client, refused } = await startWaiting();
    client.data(refused, 'after its end');
    expect(await client.resetCode(refused)).toBe(Code.STREAM_CLOSED);
    client.send(windowUpdate(0, WINDOW_BYTES));
    await client.fence();
    expect((await client.answer(client.get('/next'))).status).toBe(200);
  });

  it('is given up when the header timeout has passed, and no more is sent', async () => {
    const clock = new ManualClock();
    const { client, refused } = await startWaiting({ clock, limits: { headerTimeoutMs: 5000 } });
    await clock.advance(5000);
    expect(await client.resetCode(refused)).toBe(Code.CANCEL);
    client.send(windowUpdate(0, WINDOW_BYTES));
    await client.fence();
    expect((await client.answer(client.get('/next'))).status).toBe(200);
  });

  it('delays the end of the connection', async () => {
    const { sidecar, client, refused } = await startWaiting();
    const drained = sidecar.proxy.drain(15_000);
    await client.until(() => client.goaways.length === 2, 'two GOAWAY');
    client.send(windowUpdate(0, WINDOW_BYTES));
    expectHttp2Problem(await client.answer(refused), 'uri_too_long');
    expect(await client.closed()).toBe('end');
    client.socket.end();
    await drained;
  });

  it('is answered although the app half-closed', async () => {
    const { sidecar, client, refused } = await startWaiting();
    client.socket.end(windowUpdate(0, WINDOW_BYTES));
    expectHttp2Problem(await client.answer(refused), 'uri_too_long');
    expect(await client.closed()).toBe('end');
    await sidecar.idle();
  });
});

it.each([
  ['a path that is too long', `/${'p'.repeat(600)}`, [], 414],
  ['fields that are too large', '/', ['x-large', 'x'.repeat(6_000)], 431],
])('HEAD with %s is answered without a body', async (_, path, fields, status) => {
  const sidecar = await startSidecar({ limits: { headerBytes: 1024, targetBytes: 512 } });
  const client = await connectHttp2(sidecar);
  const answer = await client.answer(client.request(requestFields('HEAD', path, ...fields)));
  expect(answer).toMatchObject({ status, body: '', ended: true, reset: undefined });
  expect(answer.head?.value('content-length')).not.toBe('0');
  expect(client.frames.filter(({ type }) => type === Type.DATA)).toEqual([]);
});

describe('an internal fault while the sidecar reads from one connection', () => {
  /** A clock that cannot tell the time, once. */
  class BrokenClock extends ManualClock {
    broken = false;

    override monotonicMs(): number {
      if (!this.broken) return super.monotonicMs();
      this.broken = false;
      throw new Error('the clock has stopped');
    }
  }

  it('closes that connection and no other', async () => {
    const clock = new BrokenClock();
    const upstream = await startUpstream(answering(ok('served')));
    const sidecar = await startSidecar({ upstream, clock });
    const [client, other] = [await connectHttp2(sidecar), await connectHttp2(sidecar)];
    await Promise.all([client.fence(), other.fence()]);
    clock.broken = true;
    client.send(ping());
    await client.closed();
    expect(sidecar.logLines.join()).toContain('"error":"internal"');
    expect((await other.answer(other.get('/'))).body).toBe('served');
  });
});
