import { type FrameLimits, FrameReader } from '../../../src/proxy/http2/frame-reader.ts';
import type { Frame } from '../../../src/proxy/http2/frames.ts';

export const FRAME_LIMITS: FrameLimits = { frameBytes: 16_384, blockBytes: 65_536, continuations: 8 };

/** A frame written by hand: `payload` as octets, or hexadecimal digits with any blanks. */
export function frame(type: number, flags: number, streamId: number, payload: Buffer | string = ''): Buffer {
  const octets = typeof payload === 'string' ? hex(payload) : payload;
  const header = Buffer.alloc(9);
  header.writeUIntBE(octets.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, octets]);
}

export function hex(digits: string): Buffer {
  return Buffer.from(digits.replace(/\s/g, ''), 'hex');
}

/** All frames that the pieces bring, with copies of what they hold as latin1; DATA is joined where it was cut. */
export function readFrames(pieces: readonly Buffer[], limits: FrameLimits = FRAME_LIMITS): object[] {
  const reader = new FrameReader(limits);
  const frames: object[] = [];
  let data: { streamId: number; data: string; windowBytes: number; ends: number; empty: number } | undefined;
  for (const piece of pieces) {
    // What was read is overwritten, as it is in a buffer that is read into again and again.
    const chunk = Buffer.from(piece);
    for (let at = 0; ; at = reader.position) {
      const next = reader.read(chunk, at);
      if (next === undefined) break;
      if (next.kind !== 'data') {
        data = undefined;
        frames.push(copied(next));
        if (next.kind === 'connection_fault') return frames;
        continue;
      }
      if (data?.streamId !== next.streamId) {
        data = { streamId: next.streamId, data: '', windowBytes: 0, ends: 0, empty: 0 };
        frames.push(data);
      }
      data.data += next.data.toString('latin1');
      data.windowBytes += next.windowBytes;
      data.ends += Number(next.endStream);
      data.empty += Number(next.empty);
    }
    chunk.fill(0xee);
  }
  return frames;
}

function copied(frame: Frame): object {
  return Object.fromEntries(
    Object.entries(frame).map(([key, value]) => [
      key,
      Buffer.isBuffer(value) ? value.toString('latin1') : value,
    ]),
  );
}
