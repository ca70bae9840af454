import { once } from 'node:events';
import { constants } from 'node:http2';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ListenAddress } from '../../../src/platform/net/address.ts';
import { until } from '../../support/until.ts';
import { FIRST } from '../fake-bearer.ts';
import { type Answering, HTTP2, respond, startHttp2 } from '../http2-upstream/node-upstream.ts';
import { routeTo, startSidecar } from '../sidecar.ts';
import { writeBlock } from './field-block.ts';
import { Code, Flag, frame, PREFACE, reset, settings, Type } from './frames.ts';
import { connectHttp2 } from './raw-http2-client.ts';

async function start(answer: Answering) {
  const upstream = await startHttp2(answer);
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
  return { upstream, sidecar, client: await connectHttp2(sidecar) };
}

/** Answers with what came, and says how much that was. */
const echo: Answering = async ({ stream, body }) => {
  const { text, trailers } = await body();
  stream.respond({ ':status': 200 }, { waitForTrailers: true });
  stream.on('wantTrailers', () => {
    stream.sendTrailers({ 'x-length': String(text.length), 'x-seen': String(trailers['x-mark']) });
  });
  stream.end(text);
};

/** An upstream that begins an answer to its first request and then resets it, as no library would. */
async function startResetting(code: number): Promise<{ address: ListenAddress }> {
  const begun = [
    frame(Type.HEADERS, Flag.END_HEADERS, 1, writeBlock([':status', '200'])),
    frame(Type.DATA, 0, 1, 'some'),
    reset(1, code),
  ];
  const server = createServer((socket) => {
    let came = Buffer.alloc(0);
    let isAnswered = false;
    socket.write(settings());
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      came = Buffer.concat([came, chunk]);
      let at = PREFACE.length;
      while (came.length >= at + 9) {
        if (came[at + 3] === Type.HEADERS && !isAnswered) {
          isAnswered = true;
          socket.write(Buffer.concat([frame(Type.SETTINGS, Flag.ACK, 0), ...begun]));
        }
        at += 9 + came.readUIntBE(at, 3);
      }
    });
    onTestFinished(() => void socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { address: { host: '127.0.0.1', port: (server.address() as AddressInfo).port } };
}

describe('HTTP/2 on both sides', () => {
  it('passes heads, bodies and trailers in both directions with the token', async () => {
    const { upstream, client } = await start(echo);
    const stream = client.post('/a?b', 'te', 'trailers', 'cookie', 'a=1', 'cookie', 'b=2');
    client.data(stream, 'hello ').data(stream, 'world').headers(stream, ['x-mark', 'kept'], true);

    const got = await client.answer(stream);

    expect([got.status, got.body]).toEqual([200, 'hello world']);
    expect(got.trailers?.fields).toEqual(['x-length', '11', 'x-seen', 'kept']);
    expect(upstream.arrived[0]?.headers).toMatchObject({
      ':method': 'POST',
      ':path': '/a?b',
      ':authority': upstream.authority,
      authorization: FIRST,
      te: 'trailers',
      cookie: 'a=1; b=2',
    });
  });

  it('passes an answer of trailers only as one frame', async () => {
    const { client } = await start(({ stream }) => {
      stream.respond({ ':status': 200, 'grpc-status': '5' }, { endStream: true });
    });
    const stream = client.post('/pkg.Service/Method', 'content-type', 'application/grpc', 'te', 'trailers');
    client.data(stream, '\0\0\0\0\0', true);
    const got = await client.answer(stream);
    expect(got.head?.value('grpc-status')).toBe('5');
    expect(client.frames.filter(({ streamId }) => streamId === stream).map(({ type }) => type)).not.toContain(
      0,
    );
  });

  it('passes many simultaneous bodies larger than any window', async () => {
    const { client } = await start(echo);
    const length = 300_000;
    const streams = Array.from({ length: 10 }, () => client.post('/'));
    const sent = new Map(streams.map((stream) => [stream, 0]));
    const send = (): boolean => {
      const grown = (of: number) =>
        client.frames
          .filter(({ type, streamId }) => type === Type.WINDOW_UPDATE && streamId === of)
          .reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
      for (const [stream, before] of sent) {
        const bytes = Math.min(16_384, length - before, 65_536 + grown(stream) - before);
        if (bytes <= 0) continue;
        client.data(stream, Buffer.alloc(bytes, String((stream >> 1) % 10)), before + bytes === length);
        sent.set(stream, before + bytes);
      }
      return [...sent.values()].every((bytes) => bytes === length);
    };
    await client.frame(Type.SETTINGS);
    await until(send);
    for (const stream of streams) {
      const got = await client.answer(stream);
      expect(got.body === String((stream >> 1) % 10).repeat(length)).toBe(true);
      expect(got.trailers?.value('x-length')).toBe(String(length));
    }
  });

  it('allows both sides to take turns', async () => {
    const { client } = await start(({ stream }) => {
      stream.respond({ ':status': 200 });
      stream.on('data', (data: Buffer) => stream.write(`re: ${data.toString()};`));
      stream.on('end', () => stream.end('bye'));
    });
    const stream = client.post('/');
    await client.head(stream);
    for (const [word, soFar] of [
      ['one', 're: one;'],
      ['two', 're: one;re: two;'],
    ] as const) {
      client.data(stream, word);
      await client.until(() => client.soFar(stream).body === soFar);
    }
    client.data(stream, '', true);
    expect((await client.answer(stream)).body).toBe('re: one;re: two;bye');
  });

  it.each([
    ['CANCEL', Code.CANCEL, Code.CANCEL],
    ['ENHANCE_YOUR_CALM', Code.ENHANCE_YOUR_CALM, Code.ENHANCE_YOUR_CALM],
    ['PROTOCOL_ERROR', Code.PROTOCOL_ERROR, Code.INTERNAL_ERROR],
    ['NO_ERROR', Code.NO_ERROR, Code.INTERNAL_ERROR],
  ])('resets the stream of the app with the same code after the upstream’s %s', async (_, code, expected) => {
    const upstream = await startResetting(code);
    const sidecar = await startSidecar({ routes: [routeTo(upstream, { protocol: 'h2c' })] });
    const client = await connectHttp2(sidecar);
    const stream = client.get('/');
    expect(await client.resetCode(stream)).toBe(expected);
    expect(client.soFar(stream)).toMatchObject({ status: 200, ended: false });
    await client.fence();
  });

  it('passes a reset by the app to the upstream, and other streams go on', async () => {
    const { upstream, sidecar, client } = await start(({ stream, headers, ...request }) => {
      if (headers[':path'] === '/other') return respond('other')({ stream, headers, ...request });
      stream.respond({ ':status': 200 });
      stream.write('some');
    });
    const stream = client.get('/');
    await client.until(() => client.soFar(stream).body === 'some');
    const [arrived] = upstream.arrived;
    if (arrived === undefined) throw new Error('nothing arrived');
    const closed = once(arrived.stream, 'close');
    client.send(reset(stream, Code.CANCEL));
    await closed;
    expect(arrived.stream.rstCode).toBe(constants.NGHTTP2_CANCEL);
    expect((await client.answer(client.get('/other'))).body).toBe('other');
    await sidecar.idle();
  });
});
