import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { get, ok } from '../messages.ts';
import { expectProblem } from '../problem.ts';
import { answering, startUpstream } from '../raw-upstream.ts';
import { startSidecar } from '../sidecar.ts';
import { readBySidecar } from '../sidecar-socket.ts';
import { writeBlock } from './field-block.ts';
import { Code, Flag, frame, PREFACE, Setting, settings, Type } from './frames.ts';
import { connectHttp2, RawHttp2Client, requestFields } from './raw-http2-client.ts';

/** Says nothing but what the test says: it would stand amid that. */
const SILENT = { answers: false, updatesWindows: false };

const GET = frame(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 1, writeBlock(requestFields('GET', '/')));

describe('the first octets of a connection', () => {
  it('distinguish HTTP/2 from HTTP/1.1 on one port', async () => {
    const upstream = await startUpstream(answering(ok('both')));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    expect((await client.answer(client.get('/'))).body).toBe('both');
    expect((await sidecar.exchange(get('/'))).body).toBe('both');
  });

  it('may come one by one, like all that follow', async () => {
    const upstream = await startUpstream(answering(ok('slowly')));
    const sidecar = await startSidecar({ upstream });
    const client = new RawHttp2Client((await sidecar.connect()).socket, SILENT);
    for (const octet of Buffer.concat([PREFACE, settings(), GET])) {
      client.send(Buffer.from([octet]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await client.answer(1)).body).toBe('slowly');
  });

  it('and the rest may be split anywhere', async () => {
    const upstream = await startUpstream(async (arrived) => arrived.answer(ok((await arrived.body()).text)));
    const sidecar = await startSidecar({ upstream });
    const post = writeBlock(requestFields('POST', '/', 'content-length', '12'));
    const octets = Buffer.concat([
      PREFACE,
      settings([Setting.INITIAL_WINDOW_SIZE, 70_000]),
      frame(Type.HEADERS, Flag.NONE, 1, post.subarray(0, 9)),
      frame(Type.CONTINUATION, Flag.END_HEADERS, 1, post.subarray(9)),
      frame(Type.DATA, Flag.PADDED, 1, '\x03hello \0\0\0'),
      frame(Type.PING, 0, 0, 'whatever'),
      frame(Type.PRIORITY, 0, 3, '\0\0\0\0\x10'),
      frame(0x42, 0xff, 7, 'unknown'),
      frame(Type.DATA, Flag.END_STREAM, 1, 'world!'),
    ]);
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: octets.length - 1 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(cuts, async (at) => {
        const client = new RawHttp2Client((await sidecar.connect()).socket, SILENT);
        const places = [0, ...at.toSorted((a, b) => a - b), octets.length];
        for (let index = 1; index < places.length; index++) {
          client.send(octets.subarray(places[index - 1], places[index]));
          await new Promise((resolve) => setImmediate(resolve));
        }
        const got = await client.answer(1);
        expect([got.status, got.body, got.reset]).toEqual([200, 'hello world!', undefined]);
        client.socket.destroy();
      }),
      { numRuns: 60 },
    );
  });

  it('that resemble the preface are not a request of either version', async () => {
    const sidecar = await startSidecar({});
    for (const at of [0, 4, 14, 18, 23]) {
      const wrong = Buffer.from(PREFACE);
      wrong[at] = 0x58;
      const client = await sidecar.connect();
      const answer = await client
        .send(Buffer.concat([wrong, settings(), GET, Buffer.from('\r\n\r\n')]))
        .response();
      expectProblem(answer, 'bad_request');
      expect(await client.closed()).toBe('end');
    }
  });

  it('that are part of the preface followed by silence time out', async () => {
    const clock = new ManualClock();
    const sidecar = await startSidecar({ clock, limits: { headerTimeoutMs: 50 } });
    const client = await sidecar.connect();
    client.send(PREFACE.subarray(0, 20));
    await readBySidecar(client);
    await clock.advance(50);
    expectProblem(await client.response(), 'bad_request');
    expect(await client.closed()).toBe('end');
  });

  it('that are part of the preface followed by the end are ignored', async () => {
    const sidecar = await startSidecar({});
    const client = await sidecar.connect();
    client.send(PREFACE.subarray(0, 10)).end();
    expect(await client.closed()).toBe('end');
  });

  it('must be the preface followed by SETTINGS', async () => {
    const sidecar = await startSidecar({});
    const client = new RawHttp2Client((await sidecar.connect()).socket, SILENT);
    client.send(PREFACE, GET);
    expect(await client.closed()).toBe('end');
    expect(client.goaways.map(({ code }) => code)).toEqual([Code.PROTOCOL_ERROR]);
  });

  it('with Upgrade: h2c are an HTTP/1.1 request whose offer is not accepted', async () => {
    const upstream = await startUpstream(answering(ok('still HTTP/1.1')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    const fields = [
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQAAP__',
    ];
    const answer = await client.send(get('/', ...fields)).response();
    expect([answer.status, answer.body]).toEqual([200, 'still HTTP/1.1']);
  });
});

describe('the SETTINGS of the sidecar', () => {
  it('state its limits and announce neither push nor extended CONNECT', async () => {
    const limits = { http2: { maxStreams: 7, streamWindowBytes: 65_536, connectionWindowBytes: 131_072 } };
    const sidecar = await startSidecar({ limits });
    const client = await connectHttp2(sidecar);
    const { payload } = await client.frame(Type.SETTINGS);
    const said = new Map<number, number>();
    for (let at = 0; at < payload.length; at += 6)
      said.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    expect(said.get(Setting.MAX_CONCURRENT_STREAMS)).toBe(7);
    expect(said.get(Setting.INITIAL_WINDOW_SIZE)).toBe(65_536);
    expect(said.get(Setting.MAX_FRAME_SIZE)).toBe(16_384);
    expect(said.has(Setting.ENABLE_CONNECT_PROTOCOL)).toBe(false);
    const update = await client.frame(Type.WINDOW_UPDATE);
    expect(update.payload.readUInt32BE(0)).toBe(131_072 - 65_535);
  });
});
