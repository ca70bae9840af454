import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cutAt } from '../http1/transcript.ts';
import { FRAME_LIMITS, frame, hex, readFrames } from './frames.ts';

const DATA = 0;
const HEADERS = 1;
const PRIORITY = 2;
const RST_STREAM = 3;
const SETTINGS = 4;
const PUSH_PROMISE = 5;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const CONTINUATION = 9;

describe('the HTTP/2 frame reader', () => {
  test.each([
    ['DATA', frame(DATA, 0, 1, '6162'), { streamId: 1, data: 'ab', windowBytes: 2, ends: 0, empty: 0 }],
    [
      'DATA that ends',
      frame(DATA, 1, 1, '6162'),
      { streamId: 1, data: 'ab', windowBytes: 2, ends: 1, empty: 0 },
    ],
    [
      'padded DATA, padding counts',
      frame(DATA, 9, 3, '02 6162 0000'),
      { streamId: 3, data: 'ab', windowBytes: 5, ends: 1, empty: 0 },
    ],
    [
      'DATA that is all padding',
      frame(DATA, 8, 3, '02 0000'),
      { streamId: 3, data: '', windowBytes: 3, ends: 0, empty: 1 },
    ],
    ['empty DATA', frame(DATA, 0, 3), { streamId: 3, data: '', windowBytes: 0, ends: 0, empty: 1 }],
    ['empty DATA that ends', frame(DATA, 1, 3), { streamId: 3, data: '', windowBytes: 0, ends: 1, empty: 0 }],
    [
      'HEADERS',
      frame(HEADERS, 5, 1, '82'),
      { kind: 'headers', streamId: 1, block: '\x82', endStream: true, selfDependent: false },
    ],
    [
      'HEADERS, padded and with a priority',
      frame(HEADERS, 0x2c, 1, '01 80000003 ff 82 00'),
      { kind: 'headers', streamId: 1, block: '\x82', endStream: false, selfDependent: false },
    ],
    [
      'HEADERS that depend on their own stream',
      frame(HEADERS, 0x24, 3, '00000003 00 82'),
      { kind: 'headers', streamId: 3, block: '\x82', endStream: false, selfDependent: true },
    ],
    [
      'HEADERS whose padding leaves nothing',
      frame(HEADERS, 0xc, 1, '01 00'),
      { kind: 'headers', streamId: 1, block: '', endStream: false, selfDependent: false },
    ],
    ['PRIORITY', frame(PRIORITY, 0, 1, '00000003 10'), { kind: 'ignored' }],
    ['RST_STREAM', frame(RST_STREAM, 0, 1, 'fffffff8'), { kind: 'reset', streamId: 1, code: 0xfffffff8 }],
    ['SETTINGS', frame(SETTINGS, 0, 0, '0004 00000001'), { kind: 'settings', payload: '\0\x04\0\0\0\x01' }],
    ['SETTINGS acknowledged', frame(SETTINGS, 1, 0), { kind: 'settings_ack' }],
    ['PING', frame(PING, 0, 0, '3132333435363738'), { kind: 'ping', ack: false, opaque: '12345678' }],
    [
      'PING acknowledged',
      frame(PING, 1, 0, '3132333435363738'),
      { kind: 'ping', ack: true, opaque: '12345678' },
    ],
    [
      'GOAWAY, its reserved bit set',
      frame(GOAWAY, 0, 0, '80000005 0000000b 6869'),
      { kind: 'goaway', lastStreamId: 5, code: 11, debugData: 'hi' },
    ],
    [
      'WINDOW_UPDATE',
      frame(WINDOW_UPDATE, 0, 0, 'ffffffff'),
      { kind: 'window_update', streamId: 0, increment: 0x7fffffff },
    ],
    ['an unknown type', frame(0xfa, 0xff, 7, '00112233'), { kind: 'ignored' }],
    [
      'a stream identifier with its reserved bit set',
      frame(RST_STREAM, 0, 0x80000001, '00000008'),
      { kind: 'reset', streamId: 1, code: 8 },
    ],
  ])('%s', (_name, octets, expected) => {
    expect(readFrames([octets])).toEqual([expected]);
    expect(readFrames(cutAt(octets, [...octets.keys()]))).toEqual([expected]);
  });

  test('reads a field block in CONTINUATION frames', () => {
    const octets = Buffer.concat([
      frame(HEADERS, 1, 5, '82'),
      frame(CONTINUATION, 0, 5, '84'),
      frame(CONTINUATION, 1, 5),
      frame(CONTINUATION, 4, 5, '86'),
      frame(PING, 0, 0, '0000000000000000'),
    ]);
    expect(readFrames([octets])).toEqual([
      { kind: 'headers', streamId: 5, block: '\x82\x84\x86', endStream: true, selfDependent: false },
      { kind: 'ping', ack: false, opaque: '\0'.repeat(8) },
    ]);
  });

  test('passes DATA on before its frame is complete', () => {
    const octets = frame(DATA, 0, 1, Buffer.alloc(1000, 'x'));
    expect(readFrames([octets.subarray(0, 500)])).toEqual([
      { streamId: 1, data: 'x'.repeat(491), windowBytes: 491, ends: 0, empty: 0 },
    ]);
  });
});

describe('a connection error of HTTP/2 framing', () => {
  const open = frame(HEADERS, 0, 1, '82');
  test.each([
    ['frame_too_large', frame(DATA, 0, 1, Buffer.alloc(16_385))],
    ['frame_too_large', frame(0xfa, 0, 0, Buffer.alloc(16_385))],
    ['stream_missing', frame(DATA, 0, 0)],
    ['stream_missing', frame(HEADERS, 4, 0, '82')],
    ['stream_missing', frame(PRIORITY, 0, 0, '0000000000')],
    ['stream_missing', frame(RST_STREAM, 0, 0, '00000000')],
    ['continuation_unexpected', frame(CONTINUATION, 4, 0, '82')],
    ['continuation_unexpected', frame(CONTINUATION, 4, 1, '82')],
    ['continuation_unexpected', Buffer.concat([open, frame(CONTINUATION, 4, 3, '82')])],
    ['continuation_unexpected', Buffer.concat([frame(HEADERS, 4, 1, '82'), frame(CONTINUATION, 4, 1, '82')])],
    ['continuation_missing', Buffer.concat([open, frame(DATA, 0, 1)])],
    ['continuation_missing', Buffer.concat([open, frame(HEADERS, 4, 1, '82')])],
    ['continuation_missing', Buffer.concat([open, frame(0xfa, 0, 1)])],
    ['continuation_missing', Buffer.concat([open, frame(PING, 0, 0, '0000000000000000')])],
    ['stream_unexpected', frame(SETTINGS, 0, 1)],
    ['stream_unexpected', frame(PING, 0, 1, '0000000000000000')],
    ['stream_unexpected', frame(GOAWAY, 0, 1, '0000000000000000')],
    ['frame_length_wrong', frame(SETTINGS, 0, 0, '0004')],
    ['frame_length_wrong', frame(SETTINGS, 1, 0, '0004 00000001')],
    ['frame_length_wrong', frame(PING, 0, 0, '00')],
    ['frame_length_wrong', frame(RST_STREAM, 0, 1, '000000')],
    ['frame_length_wrong', frame(WINDOW_UPDATE, 0, 1, '0000000000')],
    ['frame_length_wrong', frame(GOAWAY, 0, 0, '00000000')],
    ['frame_length_wrong', frame(DATA, 8, 1)],
    ['frame_length_wrong', frame(HEADERS, 0xc, 1)],
    ['frame_length_wrong', frame(HEADERS, 0x24, 1, '00000000')],
    ['padding_too_long', frame(DATA, 8, 1, '01')],
    ['padding_too_long', frame(DATA, 8, 1, '03 0000')],
    ['padding_too_long', frame(HEADERS, 0xc, 1, '01')],
    ['padding_too_long', frame(HEADERS, 0x2c, 1, '02 00000000 00 82')],
    ['push_refused', frame(PUSH_PROMISE, 4, 1, '00000002 82')],
    ['increment_zero', frame(WINDOW_UPDATE, 0, 0, '80000000')],
    [
      'continuation_flood',
      Buffer.concat([open, ...Array.from({ length: 9 }, () => frame(CONTINUATION, 0, 1))]),
    ],
    [
      'block_too_large',
      Buffer.concat([
        open,
        ...Array.from({ length: 4 }, () => frame(CONTINUATION, 0, 1, Buffer.alloc(16_384))),
      ]),
    ],
  ] as const)('%s', (reason, octets) => {
    const found = readFrames([octets]).at(-1);
    expect(found).toMatchObject({ kind: 'connection_fault', reason });
    expect(readFrames(cutAt(octets, [...octets.keys()])).at(-1)).toEqual(found);
  });

  test('is found at the frame header before the payload has come', () => {
    expect(readFrames([hex('ffffff 00 00 00000001')])).toMatchObject([{ reason: 'frame_too_large' }]);
  });
});

describe('a stream error of HTTP/2 framing', () => {
  const after = frame(PING, 0, 0, '0000000000000000');
  test.each([
    ['frame_length_wrong', frame(PRIORITY, 0, 3, '00000001')],
    ['frame_length_wrong', frame(PRIORITY, 0, 3, '00000001 00 00')],
    ['self_dependency', frame(PRIORITY, 0, 3, '80000003 00')],
    ['increment_zero', frame(WINDOW_UPDATE, 0, 3, '00000000')],
  ] as const)('%s leaves the connection open', (reason, octets) => {
    const both = Buffer.concat([octets, after]);
    const found = readFrames([both]);
    expect(found).toMatchObject([{ kind: 'stream_fault', streamId: 3, reason }, { kind: 'ping' }]);
    expect(readFrames(cutAt(both, [...both.keys()]))).toEqual(found);
  });
});

test('any split of the octets gives the same HTTP/2 frames and errors', () => {
  const anyFrame = fc
    .tuple(
      fc.constantFrom(0, 0, 1, 2, 3, 4, 6, 7, 8, 9, 9, 0xfa),
      fc.integer({ min: 0, max: 255 }),
      fc.constantFrom(0, 1, 3),
      fc.uint8Array({ maxLength: 40 }),
    )
    .map(([type, flags, streamId, payload]) => frame(type, flags, streamId, Buffer.from(payload)));
  const limits = { ...FRAME_LIMITS, frameBytes: 38, blockBytes: 60, continuations: 2 };
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 12 }), fc.array(fc.nat(500)), (frames, cuts) => {
      const octets = Buffer.concat(frames);
      const whole = readFrames([octets], limits);
      expect(readFrames(cutAt(octets, cuts), limits)).toEqual(whole);
      expect(readFrames(cutAt(octets, [...octets.keys()]), limits)).toEqual(whole);
    }),
    { numRuns: 1000 },
  );
});
