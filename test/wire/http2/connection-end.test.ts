import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok } from '../messages.ts';
import { answering, type RawUpstream, startUpstream, type UpstreamRequest } from '../raw-upstream.ts';
import { startSidecar } from '../sidecar.ts';
import { readBySidecar } from '../sidecar-socket.ts';
import { writeBlock } from './field-block.ts';
import { Code, Flag, frame, goaway, ping, Setting, Type, windowUpdate } from './frames.ts';
import { expectHttp2Problem } from './problem.ts';
import { connectHttp2, type RawHttp2Client, requestFields } from './raw-http2-client.ts';

const HIGHEST = 2 ** 31 - 1;
const LONG_MS = 15_000;

describe('draining an HTTP/2 connection', () => {
  it('sends two GOAWAY frames, the last with the final stream, and lets requests in flight finish', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const [waiting, reading] = [client.get('/waiting'), client.get('/reading')];
    const [first, second] = [await upstream.request(), await upstream.request()];
    second.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('half ')));
    await client.head(reading);

    const drained = sidecar.proxy.drain(LONG_MS);

    await client.until(() => client.goaways.length === 2, 'two GOAWAY');
    expect(client.goaways).toEqual([
      { last: HIGHEST, code: Code.NO_ERROR },
      { last: reading, code: Code.NO_ERROR },
    ]);
    second.answer(chunk('and half') + LAST_CHUNK);
    first.answer(ok('whole'));
    expect((await client.answer(waiting)).body).toBe('whole');
    expect((await client.answer(reading)).body).toBe('half and half');
    await drained;
    expect(await client.closed()).toBe('end');
  });

  it('answers requests that cross the first GOAWAY and refuses those after the last', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    // Its PING goes unanswered until the test answers it.
    const client = await connectHttp2(sidecar, { answers: false });
    const served = client.get('/served');
    const arrived = await upstream.request();
    const drained = sidecar.proxy.drain(LONG_MS);
    const { payload } = await client.frame(Type.PING);
    expect(client.goaways).toEqual([{ last: HIGHEST, code: Code.NO_ERROR }]);

    const crossed = client.get('/crossed');
    expectHttp2Problem(await client.answer(crossed), 'draining');
    client.send(frame(Type.PING, Flag.ACK, 0, payload));
    await client.until(() => client.goaways.length === 2, 'two GOAWAY');
    expect(client.goaways[1]).toEqual({ last: crossed, code: Code.NO_ERROR });

    expect(await client.resetCode(client.get('/late'))).toBe(Code.REFUSED_STREAM);
    arrived.answer(ok('served'));
    expect((await client.answer(served)).body).toBe('served');
    const parting = await client.frame(Type.PING, 0, (one) => !one.payload.equals(payload));
    client.send(frame(Type.PING, Flag.ACK, 0, parting.payload));
    expect(await client.closed()).toBe('end');
    client.socket.end();
    await drained;
    expect(upstream.targets).toEqual(['/served']);
  });

  it('waits at most a second for an app that does not acknowledge', async () => {
    const clock = new ManualClock();
    const sidecar = await startSidecar({ clock });
    const client = await connectHttp2(sidecar, { answers: false });
    await client.frame(Type.SETTINGS);
    const drained = sidecar.proxy.drain(LONG_MS);
    await client.until(() => client.goaways.length === 1);
    await clock.advance(999);
    expect(client.goaways).toHaveLength(1);
    await clock.advance(1);
    await client.until(() => client.goaways.length === 2);
    expect(await client.closed()).toBe('end');
    client.socket.end();
    await drained;
  });

  it('closes idle connections of both versions', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    await client.answer(client.get('/'));
    const other = await sidecar.connect();
    await other.send(get('/')).response();
    client.socket.on('end', () => client.socket.end());
    await sidecar.proxy.drain(LONG_MS);
    expect([await client.closed(), await other.closed()]).toEqual(['end', 'end']);
  });

  it('cuts the remaining requests when its time is up', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    client.get('/hanging');
    const arrived = await upstream.request();
    await sidecar.proxy.drain(50);
    await client.closed();
    await arrived.connection.closed();
    await sidecar.idle();
  });
});

describe('an app that reads its last answer slowly', () => {
  const MIB = 1024 * 1024;
  const SIZE_BYTES = 8 * MIB;

  /** It has asked for more than the system takes at once, and reads a piece of it every so often. */
  async function start(windowBytes: number) {
    const upstream = await startUpstream(answering(ok('x'.repeat(SIZE_BYTES))));
    const clock = new ManualClock();
    const sidecar = await startSidecar({ upstream, clock });
    const client = await connectHttp2(sidecar, {
      keepsBodies: false,
      settings: [[Setting.INITIAL_WINDOW_SIZE, windowBytes]],
    });
    client.send(windowUpdate(0, 1024 * MIB));
    client.socket.on('data', () => {
      client.socket.pause();
      void clock.advance(25).then(() => client.socket.resume());
    });
    const stream = client.get('/large');
    await client.head(stream);
    return { sidecar, client, stream };
  }

  it.each(['by draining', 'by the app’s GOAWAY', 'by the app’s end'])(
    'gets it whole when the connection ends %s',
    async (how) => {
      // One that has ended its side can make no more room.
      const { sidecar, client, stream } = await start(
        how === 'by the app’s end' ? 2 * SIZE_BYTES : SIZE_BYTES / 2,
      );
      if (how === 'by draining') void sidecar.proxy.drain(LONG_MS);
      else if (how === 'by the app’s GOAWAY') client.send(goaway(0, Code.NO_ERROR));
      else client.socket.end();
      expect(await client.closed()).toBe('end');
      expect(client.dataBytes).toBe(SIZE_BYTES);
      expect(client.soFar(stream).ended).toBe(true);
    },
  );
});

describe('an app that does not acknowledge its last answer', () => {
  it('is waited for no longer than the idle timeout of the route', async () => {
    const clock = new ManualClock();
    const upstream = await startUpstream(answering(ok('small')));
    const sidecar = await startSidecar({
      upstream,
      clock,
      limits: { keepAliveTimeoutMs: 1e9 },
      route: { timeouts: { idleMs: 30_000 } },
    });
    const client = await connectHttp2(sidecar, { answers: false });
    await client.answer(client.get('/'));
    client.send(goaway(0, Code.NO_ERROR));
    await client.fence();
    await clock.advance(1000);
    await client.until(() => client.goaways.length === 2, 'two GOAWAY');
    await clock.advance(28_999);
    await client.fence();
    await clock.advance(1);
    expect(await client.closed()).toBe('end');
    await sidecar.idle();
  });
});

describe('an HTTP/2 connection without a request', () => {
  /** The sidecar's time runs as the test says. */
  async function start() {
    const clock = new ManualClock();
    const upstream = await startUpstream(answering(ok()));
    const limits = { headerTimeoutMs: 5000, keepAliveTimeoutMs: 60_000 };
    const sidecar = await startSidecar({
      upstream,
      clock,
      limits,
      route: { timeouts: { idleMs: 1e9, responseMs: 1e9 } },
    });
    const client = await connectHttp2(sidecar);
    await client.fence();
    return { clock, upstream, sidecar, client };
  }

  async function expectEnded(client: RawHttp2Client): Promise<void> {
    await client.until(() => client.goaways.length === 2, 'two GOAWAY');
    expect(client.goaways.map(({ code }) => code)).toEqual([Code.NO_ERROR, Code.NO_ERROR]);
    expect(await client.closed()).toBe('end');
  }

  it('is closed when the first request does not come in time', async () => {
    const { clock, client } = await start();
    await clock.advance(4999);
    expect(client.goaways).toEqual([]);
    await clock.advance(1);
    await expectEnded(client);
  });

  it('is closed when the next request does not come in time, whatever it pings', async () => {
    const { clock, client } = await start();
    await client.answer(client.get('/'));
    for (let passed = 0; passed < 50_000; passed += 10_000) {
      await clock.advance(10_000);
      client.send(ping());
      await client.fence();
    }
    expect((await client.answer(client.get('/'))).status).toBe(200);
    await clock.advance(59_999);
    await client.fence();
    expect(client.goaways).toEqual([]);
    await clock.advance(1);
    await expectEnded(client);
  });

  it('with part of a request is closed sooner', async () => {
    const { clock, client } = await start();
    await client.answer(client.get('/'));
    const head = frame(
      Type.HEADERS,
      Flag.END_HEADERS | Flag.END_STREAM,
      3,
      writeBlock(requestFields('GET', '/')),
    );
    await client.fence();
    client.send(head.subarray(0, 20));
    await readBySidecar(client);
    await clock.advance(4000);
    client.send(head.subarray(20, 21));
    await clock.advance(999);
    expect(client.goaways).toEqual([]);
    await clock.advance(1);
    await expectEndedAmid(client);
  });

  it('with part of a request is timed from when that part came', async () => {
    const clock = new ManualClock();
    const upstream = await startUpstream();
    const sidecar = await startSidecar({
      upstream,
      clock,
      limits: { headerTimeoutMs: 5000, keepAliveTimeoutMs: 1e9 },
      route: { timeouts: { idleMs: 1e9, responseMs: 1e9 } },
    });
    const client = await connectHttp2(sidecar);
    await client.fence();
    const head = (streamId: number) =>
      frame(
        Type.HEADERS,
        Flag.END_HEADERS | Flag.END_STREAM,
        streamId,
        writeBlock(requestFields('GET', '/')),
      );
    const sent = async (octets: Buffer) => {
      client.send(octets);
      await readBySidecar(client);
    };
    await sent(head(1).subarray(0, 20));
    await sent(head(1).subarray(20));
    const first = await upstream.request();
    await clock.advance(60_000);
    await sent(head(3).subarray(0, 20));
    first.answer(ok());
    await client.answer(1);
    await clock.advance(4000);
    expect(client.goaways).toEqual([]);
    client.send(head(3).subarray(20));
    (await upstream.request()).answer(ok());
    expect((await client.answer(3)).status).toBe(200);
  });

  /** The test cannot say what the client's answers to PING would stand amid. */
  async function expectEndedAmid(client: RawHttp2Client): Promise<void> {
    await client.until(() => client.goaways.length > 0, 'GOAWAY');
  }

  it('is told apart from one with a quiet stream', async () => {
    const { clock, client, upstream } = await start();
    const stream = client.post('/');
    await upstream.request();
    await clock.advance(600_000);
    await client.fence();
    expect(client.goaways).toEqual([]);
    client.data(stream, '', true);
    expect((await client.answer(stream)).status).toBe(200);
  });
});

describe('an HTTP/2 app that', () => {
  async function start() {
    const upstream = await startUpstream((arrived) => {
      if (arrived.head.target === '/fence') arrived.answer(ok());
    });
    const sidecar = await startSidecar({ upstream });
    return { upstream, sidecar, client: await connectHttp2(sidecar) };
  }

  async function arrival(upstream: RawUpstream, target: string): Promise<UpstreamRequest> {
    for (;;) {
      const arrived = await upstream.request();
      if (arrived.head.target === target) return arrived;
    }
  }

  it('half-closes gets complete answers to complete requests, and incomplete requests are aborted', async () => {
    const { upstream, sidecar, client } = await start();
    const whole = client.get('/whole');
    const asked = await arrival(upstream, '/whole');
    const partial = client.post('/partial');
    client.data(partial, 'some');
    const begun = await arrival(upstream, '/partial');

    client.socket.end();

    await begun.connection.closed();
    await expect(begun.body()).rejects.toThrow();
    await sidecar.fence();
    asked.answer(ok('still'));
    expect((await client.answer(whole)).body).toBe('still');
    expect(await client.closed()).toBe('end');
    await sidecar.idle();
  });

  it.each(['destroy', 'resetAndDestroy'] as const)(
    'disconnects by %s has all its upstream requests aborted',
    async (how) => {
      const { upstream, sidecar, client } = await start();
      client.get('/1');
      client.post('/2');
      const [one, two] = [await upstream.request(), await upstream.request()];
      client.socket[how]();
      await Promise.all([one.connection.closed(), two.connection.closed()]);
      await sidecar.idle();
    },
  );

  it('half-closes and disconnects later has its upstream request aborted', async () => {
    const { upstream, sidecar, client } = await start();
    client.get('/');
    const arrived = await arrival(upstream, '/');
    client.socket.end();
    await sidecar.fence();
    client.socket.destroy();
    await arrived.connection.closed();
    await sidecar.idle();
  });

  it('half-closes without a request is disconnected', async () => {
    const { client } = await start();
    await client.fence();
    client.socket.end();
    expect(await client.closed()).toBe('end');
  });
});

describe('an HTTP/2 stream on which nothing moves for the idle timeout of the route', () => {
  it('gets 408 if the request stopped, and the connection goes on', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, route: { timeouts: { idleMs: 100 } } });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/');
    client.data(stream, 'some');
    expectHttp2Problem(await client.answer(stream), 'request_timeout');
    expect(await client.resetCode(stream)).toBe(Code.NO_ERROR);
    await client.fence();
  });

  it('is reset amid its answer, and the connection goes on', async () => {
    const upstream = await startUpstream((arrived) => {
      arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('some')));
    });
    const sidecar = await startSidecar({ upstream, route: { timeouts: { idleMs: 100 } } });
    const client = await connectHttp2(sidecar);
    const stream = client.get('/');
    expect(await client.resetCode(stream)).toBe(Code.INTERNAL_ERROR);
    expect(client.soFar(stream).ended).toBe(false);
    await client.fence();
  });

  it('gets 504 if there is no answer yet', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, route: { timeouts: { responseMs: 100 } } });
    const client = await connectHttp2(sidecar);
    expectHttp2Problem(await client.answer(client.get('/')), 'upstream_timeout');
  });
});
