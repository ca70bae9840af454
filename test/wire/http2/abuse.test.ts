import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { FakeBearer } from '../fake-bearer.ts';
import { get, ok } from '../messages.ts';
import { startUpstream } from '../raw-upstream.ts';
import { routeTo, startSidecar } from '../sidecar.ts';
import { writeBlock } from './field-block.ts';
import { Code, Flag, frame, goaway, ping, reset, Setting, settings, Type, windowUpdate } from './frames.ts';
import { expectHttp2Problem } from './problem.ts';
import { type ClientOptions, connectHttp2, type RawHttp2Client, requestFields } from './raw-http2-client.ts';

const GET = writeBlock(requestFields('GET', '/'));

function request(streamId: number, endStream = true): Buffer {
  return frame(Type.HEADERS, Flag.END_HEADERS | (endStream ? Flag.END_STREAM : 0), streamId, GET);
}

/** Odd identifiers from `first` on. */
function ids(count: number, first = 1): number[] {
  return Array.from({ length: count }, (_, index) => first + index * 2);
}

/** Requests for `/fence` are answered; others wait for a token that does not come, so that they cost no connection. */
async function start(options: ClientOptions = {}) {
  const upstream = await startUpstream((arrived) => arrived.answer(ok('served')));
  const absent = new FakeBearer({ held: undefined, obtain: () => new Promise(() => {}) });
  const clock = new ManualClock();
  const sidecar = await startSidecar({
    routes: [
      routeTo(upstream, { name: 'fence', match: { pathPrefix: '/fence' } }),
      routeTo(upstream, { credential: 'absent' }),
    ],
    bearers: new Map([
      ['default', new FakeBearer()],
      ['absent', absent],
    ]),
    clock,
  });
  return { upstream, sidecar, clock, client: await connectHttp2(sidecar, options) };
}

describe('a connection is closed and counted that floods with', () => {
  const CONTINUATIONS = [
    frame(Type.HEADERS, Flag.END_STREAM, 1, GET),
    ...ids(60).map(() => frame(Type.CONTINUATION, 0, 1)),
  ];
  const LARGE_BLOCK = [
    frame(Type.HEADERS, Flag.END_STREAM, 1, GET),
    ...ids(10).map(() => frame(Type.CONTINUATION, 0, 1, Buffer.alloc(16_384))),
  ];
  it.each<[string, string, Buffer[]]>([
    [
      'streams that it resets',
      'reset_flood',
      ids(1500).flatMap((id) => [request(id), reset(id, Code.CANCEL)]),
    ],
    [
      'streams that it has reset by windows of nothing',
      'fault_flood',
      ids(300).flatMap((id) => [request(id), windowUpdate(id, 0)]),
    ],
    [
      'streams that it has reset by windows too large',
      'fault_flood',
      ids(300).flatMap((id) => [request(id), windowUpdate(id, 2 ** 31 - 1)]),
    ],
    [
      'streams that it has reset by data after their end',
      'fault_flood',
      ids(300).flatMap((id) => [request(id), frame(Type.DATA, 0, id, 'x')]),
    ],
    [
      'malformed requests',
      'fault_flood',
      ids(300).map((id) =>
        frame(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, id, writeBlock([':method', 'GET'])),
      ),
    ],
    ['PING', 'ping_flood', ids(400).map(() => ping())],
    ['SETTINGS', 'settings_flood', ids(40).map(() => settings())],
    [
      'SETTINGS that move the windows of many streams',
      'settings_flood',
      [
        ...ids(90).map((id) => request(id, false)),
        ...ids(40).map((id) => settings([Setting.INITIAL_WINDOW_SIZE, id])),
      ],
    ],
    [
      'DATA without data',
      'empty_data_flood',
      [request(1, false), ...ids(400).map(() => frame(Type.DATA, 0, 1))],
    ],
    ['tiny WINDOW_UPDATE', 'window_update_flood', ids(4000).map(() => windowUpdate(0, 1))],
    ['GOAWAY', 'goaway_flood', [request(1, false), ...ids(40).map(() => goaway(0, Code.NO_ERROR))]],
    ['priorities', 'ignored_frame_flood', ids(4000).map((id) => frame(Type.PRIORITY, 0, id, '\0\0\0\0\x10'))],
    ['frames of unknown types', 'ignored_frame_flood', ids(4000).map(() => frame(0x42, 0, 0))],
    [
      'unexpected PING acknowledgements',
      'ignored_frame_flood',
      ids(4000).map(() => ping('12345678', Flag.ACK)),
    ],
    ['CONTINUATION', 'continuation_flood', CONTINUATIONS],
    ['a field block without end', 'block_too_large', LARGE_BLOCK],
  ])('%s', async (_, kind, frames) => {
    const { sidecar, client } = await start({ answers: false });

    client.send(...frames);

    await client.closed();
    expect(client.goaways.at(-1)?.code).toBe(Code.ENHANCE_YOUR_CALM);
    expect(await sidecar.metric('proxy_http2_abuse_total', { kind })).toBe(1);
    expect(await sidecar.metric('proxy_http2_abuse_total')).toBe(1);
    client.socket.destroy();
    await sidecar.idle();
    expect((await sidecar.fence()).body).toBe('served');
  });
});

describe('stream resets by the app', () => {
  it('are not offset by the sidecar’s own answers', async () => {
    const { sidecar, client } = await start();
    const own = writeBlock(requestFields('OPTIONS', '/', 'max-forwards', '0'));
    const pairs = ids(1500).flatMap((at) => [
      frame(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 2 * at - 1, own),
      request(2 * at + 1),
      reset(2 * at + 1, Code.CANCEL),
    ]);
    client.send(...pairs);
    await client.closed();
    expect(client.goaways.at(-1)?.code).toBe(Code.ENHANCE_YOUR_CALM);
    expect(await sidecar.metric('proxy_http2_abuse_total', { kind: 'reset_flood' })).toBe(1);
  });

  it('are offset by answers of upstreams', async () => {
    const { client } = await start();
    // More than a thousand, and no time passes that would allow them.
    for (let batch = 0; batch < 11; batch++) {
      const answers: number[] = [];
      for (let at = 0; at < 100; at++) {
        const given = client.get('/');
        client.send(reset(given, Code.CANCEL));
      }
      for (let at = 0; at < 20; at++) answers.push(client.get('/fence'));
      for (const id of answers) expect((await client.answer(id)).status).toBe(200);
    }
    await client.fence();
    expect(client.goaways).toEqual([]);
  });
});

describe('a connection is closed that breaks a rule', () => {
  it.each<[string, number, Buffer[]]>([
    ['the connection’s window', Code.FLOW_CONTROL_ERROR, [windowUpdate(0, 2 ** 31 - 1)]],
    [
      'the windows of all streams',
      Code.FLOW_CONTROL_ERROR,
      [request(1, false), windowUpdate(1, 2 ** 30), settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1])],
    ],
    ['SETTINGS', Code.FLOW_CONTROL_ERROR, [settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31])]],
    ['the size of frames', Code.FRAME_SIZE_ERROR, [frame(Type.DATA, 0, 1, Buffer.alloc(16_385))]],
    ['the order of streams', Code.PROTOCOL_ERROR, [request(5, false), request(3)]],
    ['the numbers of streams', Code.PROTOCOL_ERROR, [request(2)]],
    [
      'HPACK',
      Code.COMPRESSION_ERROR,
      [
        frame(
          Type.HEADERS,
          Flag.END_HEADERS | Flag.END_STREAM,
          1,
          Buffer.from([0xff, 0x80, 0x80, 0x80, 0x80, 0x01]),
        ),
      ],
    ],
    ['a field block', Code.PROTOCOL_ERROR, [frame(Type.HEADERS, 0, 1, GET), ping()]],
  ])('%s', async (_, code, frames) => {
    const { sidecar, client } = await start({ answers: false });
    client.send(...frames);
    await client.closed();
    expect(client.goaways.at(-1)?.code).toBe(code);
    expect(await sidecar.metric('proxy_errors_total', { route: 'none', error: 'bad_request' })).toBe(1);
    expect(await sidecar.metric('proxy_http2_abuse_total')).toBe(0);
    client.socket.destroy();
    await sidecar.idle();
  });
});

describe('one connection', () => {
  it('cannot make the sidecar expand a compressed field section to megabytes, and other streams go on', async () => {
    const { client } = await start();
    const name = Buffer.from([0x40, 0x01, 0x78]);
    const value = Buffer.concat([Buffer.from([0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, 'y')]);
    const bomb = Buffer.concat([GET, name, value, Buffer.alloc(10_000, 0xbe)]);
    client.send(frame(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 1, bomb));
    expectHttp2Problem(await client.answer(1), 'headers_too_large');
    client.headers(3, requestFields('GET', '/fence'), true);
    expect((await client.answer(3)).body).toBe('served');
  });

  it('that opens and resets a thousand streams holds no more than the allowed number', async () => {
    const { sidecar, client } = await start();
    client.send(...ids(1000).map((id) => request(id, false)));
    await client.until(() => client.frames.filter(({ type }) => type === Type.RST_STREAM).length === 900);
    const refused = client.frames.filter(({ type }) => type === Type.RST_STREAM);
    expect(refused.every(({ payload }) => payload.readUInt32BE(0) === Code.REFUSED_STREAM)).toBe(true);
    expect(await sidecar.metric('proxy_requests_in_flight')).toBe(100);
    expect((await sidecar.exchange(get('/fence'))).body).toBe('served');
  });

  it('may send one window of a body that waits for its token; more resets the stream', async () => {
    const upstream = await startUpstream();
    const asked = Promise.withResolvers<void>();
    const bearer = new FakeBearer({
      held: undefined,
      obtain: () => {
        asked.resolve();
        return new Promise(() => {});
      },
    });
    const sidecar = await startSidecar({ upstream, bearer });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/');
    for (let sent = 0; sent < 65_536; sent += 16_384) client.data(stream, Buffer.alloc(16_384));
    await asked.promise;
    await client.fence();
    expect(
      client.frames.filter(({ type, streamId }) => type === Type.WINDOW_UPDATE && streamId === stream),
    ).toEqual([]);
    client.data(stream, 'x');
    expect(await client.resetCode(stream)).toBe(Code.FLOW_CONTROL_ERROR);
    await sidecar.idle();
  });

  it('that opens no window for an answer has it reset in time', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok('hello')));
    const sidecar = await startSidecar({ upstream, route: { timeouts: { idleMs: 100 } } });
    const client = await connectHttp2(sidecar, { settings: [[Setting.INITIAL_WINDOW_SIZE, 0]] });
    const stream = client.get('/');
    expect(await client.resetCode(stream)).toBe(Code.CANCEL);
    expect(client.soFar(stream)).toMatchObject({ status: 200, body: '', ended: false });
    await sidecar.idle();
  });

  it('that opens the window octet by octet gets the answer whole', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok('hello')));
    const sidecar = await startSidecar({ upstream });
    const client: RawHttp2Client = await connectHttp2(sidecar, {
      settings: [[Setting.INITIAL_WINDOW_SIZE, 0]],
      updatesWindows: false,
    });
    const stream = client.get('/');
    await client.head(stream);
    for (const part of ['h', 'he', 'hel', 'hell', 'hello']) {
      client.send(windowUpdate(stream, 1));
      await client.until(() => client.soFar(stream).body === part);
    }
    expect((await client.answer(stream)).ended).toBe(true);
  });
});
