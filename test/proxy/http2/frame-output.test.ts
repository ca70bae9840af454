import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ErrorCode } from '../../../src/proxy/http2/errors.ts';
import { FrameOutput } from '../../../src/proxy/http2/frame-output.ts';
import { volume } from '../../support/volume.ts';
import { frame, readFrames } from './frames.ts';

function written(write: (output: FrameOutput) => void): Buffer {
  const output = new FrameOutput(Buffer.alloc(3));
  write(output);
  return Buffer.from(output.take());
}

describe('an HTTP/2 frame is written as the RFC lays it out', () => {
  test.each<[string, (output: FrameOutput) => void, Buffer]>([
    [
      'SETTINGS',
      (out) =>
        out.settings([
          [3, 100],
          [4, 0xffff],
        ]),
      frame(4, 0, 0, '0003 00000064 0004 0000ffff'),
    ],
    ['SETTINGS acknowledged', (out) => out.settingsAck(), frame(4, 1, 0)],
    ['PING', (out) => out.ping(false, Buffer.from('12345678')), frame(6, 0, 0, '3132333435363738')],
    [
      'PING acknowledged',
      (out) => out.ping(true, Buffer.from('12345678')),
      frame(6, 1, 0, '3132333435363738'),
    ],
    ['GOAWAY', (out) => out.goaway(0x7fffffff, ErrorCode.NO_ERROR), frame(7, 0, 0, '7fffffff 00000000')],
    ['RST_STREAM', (out) => out.reset(0x7fffffff, ErrorCode.CANCEL), frame(3, 0, 0x7fffffff, '00000008')],
    ['WINDOW_UPDATE', (out) => out.windowUpdate(0, 0x7fffffff), frame(8, 0, 0, '7fffffff')],
    [
      'the header of DATA',
      (out) => out.dataHeader(5, 0xabcdef, true),
      Buffer.from('abcdef000100000005', 'hex'),
    ],
    ['other octets', (out) => out.octets(Buffer.from('hello')), Buffer.from('hello')],
  ])('%s', (_name, write, expected) => {
    expect(written(write)).toEqual(expected);
  });
});

test('frames are written one after another, and taking them empties the output', () => {
  const output = new FrameOutput();
  output.settingsAck();
  output.windowUpdate(1, 2);
  expect(output.take()).toEqual(Buffer.concat([frame(4, 1, 0), frame(8, 0, 1, '00000002')]));
  expect(output.take()).toEqual(Buffer.alloc(0));
});

test('a field block of any size becomes HEADERS, with CONTINUATION above the peer’s frame size', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.integer({ min: 1, max: 64 }),
      fc.boolean(),
      (block, frameBytes, end) => {
        const octets = written((output) => {
          output.settingsAck();
          const start = output.beginHeaders();
          output.octets(Buffer.from(block));
          output.endHeaders(start, 7, end, frameBytes);
          output.settingsAck();
        });
        const limits = { frameBytes, blockBytes: 200, continuations: 200 };
        expect(readFrames([octets], limits)).toEqual([
          { kind: 'settings_ack' },
          {
            kind: 'headers',
            streamId: 7,
            block: Buffer.from(block).toString('latin1'),
            endStream: end,
            selfDependent: false,
          },
          { kind: 'settings_ack' },
        ]);
      },
    ),
  );
});

test('an output buffer that had to grow is released with its content', () => {
  const output = new FrameOutput();
  output.octets(Buffer.alloc(100_000, 'x'));
  const taken = output.take();
  expect(output.bytes.length).toBe(1024);
  output.settingsAck();
  expect(taken).toEqual(Buffer.alloc(100_000, 'x'));
});

test('in long random sequences, a reused frame output writes what a new one writes', () => {
  const octets = fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes));
  const large = fc.constantFrom(5000, 40_000, 70_000).map((bytes) => Buffer.alloc(bytes, 'l'));
  const step = fc.oneof(
    fc.record({ kind: fc.constant('take' as const) }),
    fc.record({ kind: fc.constant('octets' as const), octets }),
    fc.record({
      kind: fc.constant('headers' as const),
      octets,
      frameBytes: fc.integer({ min: 16, max: 200 }),
    }),
    fc.record({ kind: fc.constant('octets' as const), octets: large }),
    fc.record({ kind: fc.constant('ping' as const), opaque: fc.constant(Buffer.from('12345678')) }),
  );
  const write = (output: FrameOutput, one: typeof step extends fc.Arbitrary<infer T> ? T : never): void => {
    if (one.kind === 'octets') output.octets(one.octets);
    if (one.kind === 'ping') output.ping(false, one.opaque);
    if (one.kind !== 'headers') return;
    const start = output.beginHeaders();
    output.octets(one.octets);
    output.endHeaders(start, 1, false, one.frameBytes);
  };
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 250, size: 'max' }), (steps) => {
      const output = new FrameOutput();
      let expected: Buffer[] = [];
      for (const one of steps) {
        write(output, one);
        expected.push(written((fresh) => write(fresh, one)));
        if (one.kind !== 'take') continue;
        expect(output.take().equals(Buffer.concat(expected))).toBe(true);
        expected = [];
      }
    }),
    { numRuns: volume(20, 60) },
  );
});
