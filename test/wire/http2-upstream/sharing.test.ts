import { describe, expect, it } from 'vitest';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { until } from '../../support/until.ts';
import { FakeBearer, FIRST, SECOND } from '../fake-bearer.ts';
import { get, message, post } from '../messages.ts';
import { expectProblem } from '../problem.ts';
import { startSidecar } from '../sidecar.ts';
import { CODE, startFrames, TYPE } from './frame-upstream.ts';
import { type Answering, HTTP2, startHttp2 } from './node-upstream.ts';

describe('an app that does not read its answer', () => {
  it('holds back that answer and no other on the same upstream connection', async () => {
    let written = 0;
    const upstream = await startHttp2(({ stream, headers }) => {
      stream.respond({ ':status': 200 });
      if (headers[':path'] !== '/large') {
        stream.end('small');
        return;
      }
      const piece = Buffer.alloc(64 * 1024, 'x');
      const more = (): void => {
        written += piece.length;
        if (stream.write(piece)) setImmediate(more);
        else stream.once('drain', more);
      };
      more();
    });
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
    const slow = await sidecar.connect();
    slow.socket.pause();
    slow.send(get('/large'));
    await until(() => upstream.arrived.length > 0);

    let before = -1;
    while (before !== written) {
      before = written;
      for (let turn = 0; turn < 20; turn++)
        expect((await sidecar.exchange(get('/small'))).body).toBe('small');
    }

    expect(upstream.connections()).toBe(1);
    slow.destroy();
    await until(() => upstream.arrived[0]?.stream.destroyed === true);
    expect(upstream.arrived[0]?.stream.rstCode).toBe(CODE.CANCEL);
    expect((await sidecar.exchange(get('/small'))).body).toBe('small');
  });
});

describe('an app that leaves', () => {
  it('has its request reset with CANCEL, and the upstream connection goes on', async () => {
    const upstream = await startFrames();
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
    const client = await sidecar.connect();
    client.send(get('/'));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);

    client.destroy();

    const reset = await connection.next(TYPE.RST_STREAM);
    expect([reset.streamId, reset.payload.readUInt32BE(0)]).toEqual([streamId, CODE.CANCEL]);
    const next = sidecar.exchange(get('/next'));
    connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'next');
    expect((await next).body).toBe('next');
  });
});

describe('an answer that the upstream breaks off', () => {
  it('with RST_STREAM is cut for the app', async () => {
    const upstream = await startFrames();
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
    const client = await sidecar.connect();
    client.send(get('/'));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);
    connection.answer(streamId);
    const head = await client.head();

    connection.reset(streamId, 2);

    await expect(client.body(head)).rejects.toThrow();
  });

  it('with RST_STREAM(NO_ERROR) after its end is complete although the request is not', async () => {
    const upstream = await startFrames();
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
    const client = await sidecar.connect();
    client.send(message('POST / HTTP/1.1', ['Host: app.test', 'Content-Length: 100'], 'some'));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);

    connection.answer(streamId, 'enough');
    connection.reset(streamId, CODE.NO_ERROR);

    expect(await client.response()).toMatchObject({ status: 200, body: 'enough' });
  });
});

describe('a 401 over HTTP/2', () => {
  const guarded: Answering = async ({ stream, headers, body }) => {
    const { text } = await body();
    if (headers.authorization === FIRST) {
      stream.respond({ ':status': 401, 'www-authenticate': 'Bearer' });
      stream.end('no'.repeat(50_000));
      return;
    }
    stream.respond({ ':status': 200 });
    stream.end(`${text} by ${headers.authorization === SECOND ? 'the second' : 'another'}`);
  };

  it('is retried with another token on the same connection, while other requests are served', async () => {
    const renewal = Promise.withResolvers<string>();
    const bearer = new FakeBearer({ replace: () => renewal.promise });
    const upstream = await startHttp2((arrived) =>
      arrived.headers[':path'] === '/open'
        ? arrived.stream.respond({ ':status': 204 }, { endStream: true })
        : guarded(arrived),
    );
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 }, bearer });
    const answer = sidecar.exchange(post('/', 'body'));
    await until(() => bearer.refused.length > 0);
    expect((await sidecar.exchange(get('/open'))).status).toBe(204);

    renewal.resolve(SECOND);

    expect(await answer).toMatchObject({ status: 200, body: 'body by the second' });
    expect(upstream.connections()).toBe(1);
  });

  it('is passed on whole when there is no other token', async () => {
    const renewal = Promise.withResolvers<undefined>();
    const bearer = new FakeBearer({ replace: () => renewal.promise });
    const upstream = await startHttp2(guarded);
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 }, bearer });
    const answer = sidecar.exchange(get('/'));
    await until(() => bearer.refused.length > 0);

    renewal.resolve(undefined);

    expect((await answer).status).toBe(401);
    expect((await answer).body.length).toBe(100_000);
  });

  it('that the upstream resets during the renewal is a failure, unless another token comes', async () => {
    const renewal = Promise.withResolvers<undefined>();
    const bearer = new FakeBearer({ replace: () => renewal.promise });
    const upstream = await startFrames();
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 }, bearer });
    const client = await sidecar.connect();
    client.send(get('/'));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);
    // :status 401 as a literal.
    connection.send(Buffer.from(`0000050104${streamId.toString(16).padStart(8, '0')}0803343031`, 'hex'));
    await until(() => bearer.refused.length > 0);
    connection.reset(streamId, 2);
    connection.send(Buffer.from('0000080600000000000102030405060708', 'hex'));
    await connection.next(TYPE.PING);

    renewal.resolve(undefined);

    const head = await client.head();
    expect(head.status).toBe(401);
    await expect(client.body(head)).rejects.toThrow();
  });
});

describe('timeouts apply to each request on a shared connection', () => {
  const BOUND_MS = 60_000;

  async function start() {
    const clock = new ShiftedClock();
    const upstream = await startFrames();
    const timeouts = { responseMs: BOUND_MS, idleMs: BOUND_MS };
    const sidecar = await startSidecar({ upstream, clock, route: { protocol: HTTP2, timeouts } });
    return { clock, upstream, sidecar };
  }

  it('when its answer does not come, that request alone fails', async () => {
    const { clock, upstream, sidecar } = await start();
    const late = sidecar.exchange(get('/late'));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);

    clock.advance(BOUND_MS + 1);

    expectProblem(await late, 'upstream_timeout');
    const reset = await connection.next(TYPE.RST_STREAM);
    expect([reset.streamId, reset.payload.readUInt32BE(0)]).toEqual([streamId, CODE.CANCEL]);
    const next = sidecar.exchange(get('/next'));
    // Nothing may have come for all that time.
    let came = await connection.next(TYPE.HEADERS, TYPE.PING);
    if (came.type === TYPE.PING) {
      connection.pong(came.payload);
      came = await connection.next(TYPE.HEADERS);
    }
    connection.answer(came.streamId, 'next');
    expect((await next).body).toBe('next');
  });

  it('when its answer stops, it is cut', async () => {
    const { clock, upstream, sidecar } = await start();
    const client = await sidecar.connect();
    client.send(get('/'));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);
    connection.answer(streamId);
    const head = await client.head();

    clock.advance(BOUND_MS + 1);

    await expect(client.body(head)).rejects.toThrow();
    await connection.next(TYPE.RST_STREAM);
  });

  it.each([
    ['when a request stops, the app gets 408', 100, 'some', 'request_timeout'],
    [
      'when the upstream’s window stays shut, the app gets 504',
      100_000,
      'x'.repeat(100_000),
      'upstream_timeout',
    ],
  ] as const)('%s', async (_, length, body, code) => {
    const { clock, upstream, sidecar } = await start();
    const client = await sidecar.connect();
    client.send(message('POST / HTTP/1.1', ['Host: app.test', `Content-Length: ${length}`], body));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);
    await connection.data(streamId, Math.min(body.length, 65_535));

    clock.advance(BOUND_MS + 1);

    expectProblem(await client.response(), code);
  });
});
