import { describe, expect, it } from 'vitest';
import { until } from '../../support/until.ts';
import { stillQueues } from '../kernel-queues.ts';
import { get, message, post } from '../messages.ts';
import { expectProblem } from '../problem.ts';
import { startSidecar } from '../sidecar.ts';
import {
  CODE,
  dataFrame,
  ends,
  type FrameConnection,
  frame,
  INITIAL_WINDOW_SIZE,
  MAX_CONCURRENT_STREAMS,
  startFrames,
  TYPE,
} from './frame-upstream.ts';
import { HTTP2 } from './node-upstream.ts';

async function start(...settings: [number, number][]) {
  const upstream = await startFrames((connection) => connection.settings(...settings));
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
  return { upstream, sidecar };
}

/** Answers requests as they come, until the connection ends. */
async function serve(connection: FrameConnection): Promise<void> {
  for (;;) connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'x');
}

describe('SETTINGS_MAX_CONCURRENT_STREAMS of an upstream', () => {
  it('limits one connection; a second one is opened for more requests and reused', async () => {
    const { upstream, sidecar } = await start([MAX_CONCURRENT_STREAMS, 1]);
    const first = sidecar.exchange(get('/1'));
    const one = await upstream.connection();
    const { streamId } = await one.next(TYPE.HEADERS);
    // SETTINGS are read with this.
    one.answer(streamId);
    await until(() => one.all(TYPE.SETTINGS).length > 0);

    const second = sidecar.exchange(get('/2'));

    const two = await upstream.connection();
    two.answer((await two.next(TYPE.HEADERS)).streamId, 'second');
    expect((await second).body).toBe('second');
    one.send(dataFrame(streamId, 'first', true));
    expect((await first).body).toBe('first');
    void serve(one).catch(() => {});
    void serve(two).catch(() => {});
    await Promise.all([sidecar.exchange(get('/3')), sidecar.exchange(get('/4'))]);
    expect(upstream.connections).toHaveLength(2);
  });

  it('may be lowered, and is respected from then on', async () => {
    const { upstream, sidecar } = await start([MAX_CONCURRENT_STREAMS, 10]);
    const clients = await Promise.all([1, 2, 3].map(() => sidecar.connect()));
    for (const client of clients) client.send(get('/'));
    const one = await upstream.connection();
    const ids: number[] = [];
    for (const _ of clients) ids.push((await one.next(TYPE.HEADERS)).streamId);
    one.settings([MAX_CONCURRENT_STREAMS, 2]);
    one.answer(ids[0] as number, 'x');
    await clients[0]?.response();

    // Two are open still.
    const fourth = sidecar.exchange(get('/4'));
    const two = await upstream.connection();
    two.answer((await two.next(TYPE.HEADERS)).streamId, 'on another');
    expect((await fourth).body).toBe('on another');

    one.answer(ids[1] as number, 'x');
    one.answer(ids[2] as number, 'x');
    await Promise.all([clients[1]?.response(), clients[2]?.response()]);
    const fifth = sidecar.exchange(get('/5'));
    one.answer((await one.next(TYPE.HEADERS)).streamId, 'room again');
    expect((await fifth).body).toBe('room again');
  });
});

describe('the flow-control window of an upstream', () => {
  it('holds one body back without affecting others, and is used as it opens', async () => {
    const { upstream, sidecar } = await start([INITIAL_WINDOW_SIZE, 10]);
    const slow = sidecar.exchange(post('/slow', 'abcdefghijklmnopqrstuvwxyz'));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);
    await until(() => connection.all(TYPE.DATA).length > 0);
    // What was sent before SETTINGS came is more than they allow (RFC 9113 §6.9.2).
    const other = sidecar.exchange(post('/other', 'small'));
    const { streamId: otherId } = await connection.next(TYPE.HEADERS);
    expect(await connection.data(otherId, 5)).toBe('small');
    connection.answer(otherId, 'other');
    expect((await other).body).toBe('other');

    connection.windowUpdate(streamId, 5);
    connection.windowUpdate(streamId, 100);

    expect(await connection.data(streamId, 26)).toBe('abcdefghijklmnopqrstuvwxyz');
    connection.answer(streamId, 'slow');
    expect((await slow).body).toBe('slow');
    expect(
      connection.all(TYPE.DATA).filter((frame) => frame.streamId === streamId && ends(frame)),
    ).toHaveLength(1);
  });

  it('is respected once known, and the body is sent in pieces of the allowed size', async () => {
    const { upstream, sidecar } = await start([INITIAL_WINDOW_SIZE, 10]);
    const warm = sidecar.exchange(get('/'));
    const connection = await upstream.connection();
    connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'x');
    await warm;

    const answer = sidecar.exchange(post('/', 'abcdefghijklmnopqrstuvwxyz'));
    const { streamId } = await connection.next(TYPE.HEADERS);
    expect(await connection.data(streamId, 10)).toBe('abcdefghij');
    connection.windowUpdate(streamId, 3);
    expect(await connection.data(streamId, 13)).toBe('abcdefghijklm');
    connection.settings([INITIAL_WINDOW_SIZE, 100]);
    expect(await connection.data(streamId, 26)).toBe('abcdefghijklmnopqrstuvwxyz');
    connection.answer(streamId, 'whole');
    expect((await answer).body).toBe('whole');
  });

  it('is used by an upload covered by GOAWAY, whose connection closes afterwards', async () => {
    const { upstream, sidecar } = await start([INITIAL_WINDOW_SIZE, 2 ** 31 - 1]);
    const body = 'x'.repeat(100_000);
    const upload = sidecar.exchange(post('/', body));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);
    await connection.data(streamId, 65_535);

    connection.goaway(2 ** 31 - 1, CODE.NO_ERROR);
    connection.goaway(streamId, CODE.NO_ERROR);
    await connection.read();
    connection.windowUpdate(0, body.length);

    expect(await connection.data(streamId, body.length)).toBe(body);
    connection.answer(streamId, 'whole');
    expect((await upload).body).toBe('whole');
    await connection.closed();
  });

  it('that stays shut pauses the app', async () => {
    const { upstream, sidecar } = await start();
    const client = await sidecar.connect();
    const bytes = 64 * 1024 * 1024;
    client.send(message('POST / HTTP/1.1', ['Host: app.test', `Content-Length: ${bytes}`]));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);
    const piece = Buffer.alloc(1024 * 1024, 'x');
    /** Whether something waits in the app, and none of it leaves: the sidecar, which shares this event loop, reads nothing. */
    const stopped = async (): Promise<boolean> => {
      const waiting = () => client.socket.writableLength;
      const [app] = await stillQueues([client.socket], waiting, 50);
      return waiting() > 0 && app !== undefined && app.own.peerIsFull && app.peer.unread > 0;
    };
    // The buffers on the way take what they can first, and grow.
    for (let sent = 0; sent < bytes && !(await stopped()); ) {
      if (client.socket.writableNeedDrain) continue;
      sent += piece.length;
      client.socket.write(piece);
    }

    expect(await stopped()).toBe(true);
    expect((await connection.data(streamId, 65_535)).length).toBe(65_535);
  });
});

describe('an upstream that breaks a rule of HTTP/2', () => {
  it.each([
    [
      'a push',
      () => frame(TYPE.PUSH_PROMISE, 0x4, 1, Buffer.from('0000000282', 'hex')),
      'PUSH_PROMISE',
      TYPE.GOAWAY,
    ],
    ['data before an answer', () => dataFrame(1, 'x', false), 'data came before', TYPE.RST_STREAM],
    [
      'a frame on a stream that is not open',
      () => dataFrame(99, 'x', false),
      'has not been opened',
      TYPE.GOAWAY,
    ],
    [
      'a window that adds nothing',
      () => frame(TYPE.WINDOW_UPDATE, 0, 0, Buffer.alloc(4)),
      'adds nothing',
      TYPE.GOAWAY,
    ],
  ])('by %s gets an error code, and its request fails', async (_, bytes, text, said) => {
    const { upstream, sidecar } = await start();
    const client = await sidecar.connect();
    client.send(get('/'));
    const connection = await upstream.connection();
    await connection.next(TYPE.HEADERS);

    connection.send(bytes());

    const answer = await client.response();
    expectProblem(answer, 'upstream_protocol_error');
    expect(answer.body).toContain(text);
    const { payload } = await connection.next(said);
    expect(payload.readUInt32BE(payload.length - 4)).not.toBe(CODE.NO_ERROR);
  });

  it('by sending more data than the window allows to an app that does not read has that answer cut', async () => {
    const { upstream, sidecar } = await start();
    const client = await sidecar.connect();
    client.socket.pause();
    client.send(get('/'));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);
    connection.answer(streamId);
    const reset = connection.next(TYPE.RST_STREAM);
    let over = false;
    void reset.then(() => {
      over = true;
    });
    const piece = dataFrame(streamId, 'x'.repeat(16_384), false);

    while (!over) {
      connection.send(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }

    expect((await reset).payload.readUInt32BE(0)).toBe(CODE.FLOW_CONTROL_ERROR);
    client.socket.resume();
    const next = sidecar.exchange(get('/next'));
    connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'next');
    expect((await next).body).toBe('next');
    expect(upstream.connections).toHaveLength(1);
  });

  it('by a wrong length has the answer refused, and the connection goes on', async () => {
    const { upstream, sidecar } = await start();
    const first = sidecar.exchange(get('/'));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);
    // content-length: 5, by its index in the static table.
    connection.send(
      frame(TYPE.HEADERS, 0x4, streamId, Buffer.from('880f0d0135', 'hex')),
      dataFrame(streamId, 'abc', true),
    );
    await expect(first).rejects.toThrow();

    const next = sidecar.exchange(get('/'));
    connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'next');
    expect((await next).body).toBe('next');
  });
});
