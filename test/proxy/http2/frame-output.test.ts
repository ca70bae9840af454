import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ErrorCode } from '../../../src/proxy/http2/error-code.ts';
import { FrameOutput } from '../../../src/proxy/http2/frame-output.ts';
import { frame, readFrames } from './frames.ts';

function written(write: (output: FrameOutput) => void): Buffer {
  const output = new FrameOutput(Buffer.alloc(3));
  write(output);
  return Buffer.from(output.take());
}

describe('each frame as the RFC lays it out', () => {
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

test('frames follow one another, and taking them begins anew', () => {
  const output = new FrameOutput();
  output.settingsAck();
  output.windowUpdate(1, 2);
  expect(output.take()).toEqual(Buffer.concat([frame(4, 1, 0), frame(8, 0, 1, '00000002')]));
  expect(output.take()).toEqual(Buffer.alloc(0));
});

test('a field block of any size becomes HEADERS, with CONTINUATION where the peer’s frames are smaller', () => {
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

test('a buffer that had to be large is given up with what was in it', () => {
  const output = new FrameOutput();
  output.octets(Buffer.alloc(100_000, 'x'));
  const taken = output.take();
  expect(output.bytes.length).toBe(1024);
  output.settingsAck();
  expect(taken).toEqual(Buffer.alloc(100_000, 'x'));
});
