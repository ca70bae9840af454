import { describe, expect, test } from 'vitest';
import type { ClientStream } from '../../../src/proxy/http2/client-connection.ts';
import type { RequestKind } from '../../../src/proxy/http2/messages.ts';
import { ClientEnd, LIMITS, ServerEnd } from './endpoint.ts';
import { frame, hex, readFrames } from './frames.ts';

const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const GOAWAY = 7;

const END_STREAM = 1;
const END_HEADERS = 4;

const GET = [':method', 'GET', ':scheme', 'http', ':authority', 'a', ':path', '/'];

function headers(streamId: number, block: string, flags = 0): Buffer {
  return frame(HEADERS, END_HEADERS | flags, streamId, block);
}

function asked(end: ClientEnd, how: RequestKind = 'ordinary', endStream = true): ClientStream<never> {
  const stream = end.connection.request(GET, how, endStream);
  if (stream === undefined) throw new Error('no stream may be opened');
  end.connection.output.take();
  return stream;
}

test('an HTTP/2 client connection begins with the preface and its SETTINGS with push disabled', () => {
  const end = new ClientEnd();
  end.connection.start();
  const octets = end.connection.output.take();
  expect(octets.subarray(0, 24).toString('latin1')).toBe('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  expect(readFrames([octets.subarray(24)])).toEqual([
    {
      kind: 'settings',
      payload: hex('0002 00000000 0001 00001000 0004 0000ffff 0005 00004000 0006 00010000').toString(
        'latin1',
      ),
    },
  ]);
});

describe('answers to an HTTP/2 client', () => {
  test('may be interim and final, with body and trailers', () => {
    const end = ClientEnd.started();
    asked(end);
    end.give(
      headers(1, '08 03 313033'),
      headers(1, '88 00 01 78 01 79'),
      frame(DATA, 0, 1, Buffer.from('abc')),
      headers(1, '00 01 7a 01 30', END_STREAM),
    );
    expect(end.told).toEqual([
      ['answer', 1, 'interim', 103, [], false],
      ['answer', 1, 'final', 200, ['x', 'y'], false],
      ['data', 1, 'abc', false],
      ['trailers', 1, ['z', '0']],
    ]);
    expect(end.connection.openStreams).toBe(0);
  });

  test('may come before the request has ended', () => {
    const end = ClientEnd.started();
    const stream = asked(end, 'ordinary', false);
    end.give(headers(1, '88', END_STREAM));
    expect(end.told).toEqual([['answer', 1, 'final', 200, [], true]]);
    expect(end.connection.openStreams).toBe(1);
    end.connection.sendData(stream, 0, true);
    expect(end.connection.openStreams).toBe(0);
  });

  test('to HEAD or with status 304 may declare a length without a body', () => {
    const end = ClientEnd.started();
    asked(end, 'head');
    asked(end);
    end.give(headers(1, '88 0f 0d 01 33', END_STREAM), headers(3, '8b 0f 0d 01 33', END_STREAM));
    expect(end.told.map(([event, id, , status]) => [event, id, status])).toEqual([
      ['answer', 1, 200],
      ['answer', 3, 304],
    ]);
  });

  test('to CONNECT open a tunnel', () => {
    const end = ClientEnd.started();
    const stream = end.connection.request([':method', 'CONNECT', ':authority', 'a:1'], 'connect', false);
    end.give(headers(1, '88'), frame(DATA, 0, 1, Buffer.from('abc')));
    if (stream !== undefined) end.connection.sendData(stream, 0, false);
    expect(end.told.at(-1)).toEqual(['data', 1, 'abc', false]);
  });
});

describe('a stream error at an HTTP/2 client', () => {
  test('is HEADERS in a tunnel', () => {
    const end = ClientEnd.started();
    end.connection.request([':method', 'CONNECT', ':authority', 'a:1'], 'connect', false);
    end.connection.output.take();
    expect(end.give(headers(1, '88'), headers(1, '00 01 78 01 79', END_STREAM))).toEqual([
      { kind: 'reset', streamId: 1, code: 1 },
    ]);
    expect(end.told.at(-1)).toEqual(['broken', 1, { kind: 'fault', reason: 'fields_in_tunnel' }]);
  });

  test('is an endless number of interim answers', () => {
    const end = ClientEnd.started();
    asked(end);
    const interim = headers(1, '08 03 313033');
    expect(end.give(...Array.from({ length: 64 }, () => interim))).toEqual([]);
    expect(end.give(interim)).toEqual([{ kind: 'reset', streamId: 1, code: 0xb }]);
    expect(end.told.at(-1)).toEqual(['broken', 1, { kind: 'fault', reason: 'interim_flood' }]);
  });

  test('is interim answers that together exceed the limit of a head', () => {
    const end = ClientEnd.started();
    asked(end);
    // `:status` 103, and a field of 16 000 octets with the name `a`.
    const block = Buffer.concat([hex('08 03 313033 00 01 61 7f 817c'), Buffer.alloc(16_000, 'x')]);
    const interim = frame(HEADERS, END_HEADERS, 1, block);
    expect(end.give(interim, interim, interim, interim)).toEqual([]);
    expect(end.give(interim)).toEqual([{ kind: 'reset', streamId: 1, code: 0xb }]);
    expect(end.told.at(-1)).toEqual(['broken', 1, { kind: 'fault', reason: 'interim_flood' }]);
  });

  test.each<[string, string, Buffer[]]>([
    ['data_before_head', 'no answer', [frame(DATA, 0, 1, Buffer.from('x'))]],
    [
      'data_before_head',
      'an interim answer alone',
      [headers(1, '08 03 313033'), frame(DATA, 0, 1, Buffer.from('x'))],
    ],
    ['interim_ends', 'an interim answer at the end', [headers(1, '08 03 313033', END_STREAM)]],
    ['status_malformed', '101', [headers(1, '08 03 313031')]],
    ['pseudo_missing', 'no status', [headers(1, '00 01 78 01 79')]],
    ['length_differs', 'less data than its length', [headers(1, '88 0f 0d 01 33', END_STREAM)]],
    ['trailers_unended', 'trailers amid the body', [headers(1, '88'), headers(1, '00 01 78 01 79')]],
  ])('%s: %s', (reason, _what, octets) => {
    const end = ClientEnd.started();
    asked(end);
    expect(end.give(...octets)).toEqual([{ kind: 'reset', streamId: 1, code: 1 }]);
    expect(end.told.at(-1)).toEqual(['broken', 1, { kind: 'fault', reason }]);
    expect(end.connection.openStreams).toBe(0);
  });

  test('in a frame with END_STREAM leaves the rest of that frame ignored', () => {
    for (const cut of [9, 10]) {
      const end = ClientEnd.started();
      asked(end);
      const octets = frame(DATA, END_STREAM, 1, Buffer.from('xyz'));
      end.give(octets.subarray(0, cut));
      end.give(octets.subarray(cut), headers(1, '88'));
      expect(end.told).toEqual([['broken', 1, { kind: 'fault', reason: 'data_before_head' }]]);
      expect(end.fault).toBeUndefined();
    }
  });

  test('is a head that is too large', () => {
    const end = ClientEnd.started({ section: { sectionBytes: 40, sectionFields: 9 } });
    asked(end);
    expect(end.give(headers(1, '88 00 01 78 01 79'))).toEqual([{ kind: 'reset', streamId: 1, code: 0xb }]);
  });
});

describe('a connection error at an HTTP/2 client', () => {
  const few = { burst: 10, perSecond: 0 };
  test.each<[string, Buffer]>([
    ['goaway_flood', frame(GOAWAY, 0, 0, '7fffffff 00000000')],
    ['ignored_frame_flood', frame(RST_STREAM, 0, 1, '00000000')],
  ])('%s', (reason, octets) => {
    const end = ClientEnd.started({ abuse: { ...LIMITS.abuse, goaway: few, ignored_frame: few } });
    asked(end);
    end.give(headers(1, '88', END_STREAM), ...Array.from({ length: 10 }, () => octets));
    expect(end.fault).toBeUndefined();
    end.give(octets);
    expect(end.fault?.reason).toBe(reason);
  });

  test.each<[string, Buffer[]]>([
    ['stream_idle', [headers(3, '88')]],
    ['stream_id_invalid', [headers(2, '88')]],
    ['push_refused', [frame(5, 4, 1, '00000002 82')]],
    ['settings_push', [frame(SETTINGS, 0, 0, '0002 00000001')]],
  ])('%s', (reason, octets) => {
    const end = ClientEnd.started();
    asked(end);
    expect(end.give(...octets).at(-1)).toMatchObject({ kind: 'goaway', lastStreamId: 0, code: 1 });
    expect(end.fault?.reason).toBe(reason);
  });
});

describe('requests of an HTTP/2 client', () => {
  test('in flight go on after its own GOAWAY, and no more can be opened', () => {
    const end = ClientEnd.started();
    asked(end);
    end.connection.goaway(0);
    expect(end.connection.mayOpen).toBe(false);
    expect(end.connection.request(GET, 'ordinary', true)).toBeUndefined();
    end.give(headers(1, '88', END_STREAM));
    expect(end.told).toEqual([['answer', 1, 'final', 200, [], true]]);
  });

  test.each(['7fffffff', '00000005'])('cannot be opened after a GOAWAY that names %s', (last) => {
    const end = ClientEnd.started();
    asked(end);
    end.give(frame(GOAWAY, 0, 0, `${last} 00000000`));
    expect(end.connection.mayOpen).toBe(false);
    expect(end.connection.openStreams).toBe(1);
  });

  test('are announced as possible when a stream closed or more are allowed', () => {
    const end = ClientEnd.started();
    end.give(frame(SETTINGS, 0, 0, '0003 00000001'));
    asked(end);
    end.give(frame(SETTINGS, 0, 0, '0003 00000002'));
    expect(end.told).toEqual([['mayOpen', 0]]);
    asked(end);
    end.give(headers(1, '88', END_STREAM));
    expect(end.told.slice(1)).toEqual([
      ['answer', 1, 'final', 200, [], true],
      ['mayOpen', 0],
    ]);
    end.give(headers(3, '88', END_STREAM));
    expect(end.told.at(-1)?.[0]).toBe('answer');
  });

  test('that cannot be encoded open no stream and send no octet', () => {
    const end = ClientEnd.started();
    expect(() => end.connection.request([...GET, 'x', 'a\nb'], 'ordinary', true)).toThrow('CR, LF');
    expect([end.connection.openStreams, end.connection.output.length]).toEqual([0, 0]);
    expect(asked(end).id).toBe(1);
  });

  test('are limited to the peer’s SETTINGS_MAX_CONCURRENT_STREAMS', () => {
    const end = ClientEnd.started();
    end.give(frame(SETTINGS, 0, 0, '0003 00000001'));
    asked(end);
    expect(end.connection.mayOpen).toBe(false);
    expect(end.connection.request(GET, 'ordinary', true)).toBeUndefined();
    end.give(headers(1, '88', END_STREAM));
    expect(asked(end).id).toBe(3);
  });

  test('beyond the last stream of a GOAWAY can be sent elsewhere, the others go on', () => {
    const end = ClientEnd.started();
    for (let count = 0; count < 3; count++) asked(end);
    end.give(frame(GOAWAY, 0, 0, '00000001 00000000'));
    expect(end.told).toEqual([
      ['broken', 3, { kind: 'unprocessed' }],
      ['broken', 5, { kind: 'unprocessed' }],
      ['goaway', 1, 0, ''],
    ]);
    expect(end.connection.mayOpen).toBe(false);
    end.give(headers(5, '88', END_STREAM), headers(1, '88', END_STREAM));
    expect(end.told.slice(3)).toEqual([['answer', 1, 'final', 200, [], true]]);
  });

  test('reset by this side have their following frames ignored', () => {
    const end = ClientEnd.started();
    const stream = asked(end);
    end.connection.reset(stream, 8);
    end.connection.reset(stream, 8);
    expect(end.give(headers(1, '88 40 01 78 01 79'), frame(DATA, 1, 1, Buffer.from('x')))).toEqual([
      { kind: 'reset', streamId: 1, code: 8 },
    ]);
    asked(end);
    end.give(headers(3, '88 be', END_STREAM));
    expect(end.told).toEqual([['answer', 3, 'final', 200, ['x', 'y'], true]]);
  });

  test('may be refused by the peer', () => {
    const end = ClientEnd.started();
    asked(end);
    end.give(frame(RST_STREAM, 0, 1, '00000007'));
    expect(end.told).toEqual([['broken', 1, { kind: 'reset', code: 7 }]]);
  });

  test('larger than a frame are sent with CONTINUATION', () => {
    const client = new ClientEnd();
    const server = new ServerEnd();
    client.connection.start();
    const long = 'v'.repeat(40_000);
    client.connection.request([...GET, 'authorization', long], 'ordinary', true);
    server.give(client.connection.output.take().subarray(24));
    expect(server.told).toMatchObject([['request', 1, { fields: ['authorization', long] }, true]]);
  });
});
