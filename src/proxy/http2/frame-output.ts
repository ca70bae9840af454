/** Gathers frames for one write. A DATA header's payload follows from wherever it lies. */

import type { ErrorCode } from './errors.ts';
import { Flag, FRAME_HEADER_BYTES, FrameType } from './frames.ts';

const FIRST_CAPACITY_BYTES = 1024;

/** Quiet connections keep no larger buffer. */
const MAX_KEPT_BYTES = 64 * 1024;

export class FrameOutput {
  /** Filled up to `length`; `room` may replace it. */
  bytes: Buffer;
  length = 0;

  /** @param bytes is used while it is large enough */
  constructor(bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_CAPACITY_BYTES)) {
    this.bytes = bytes;
  }

  /** The view is valid until more is written. */
  take(): Buffer {
    const taken = this.bytes.subarray(0, this.length);
    this.length = 0;
    if (this.bytes.length > MAX_KEPT_BYTES) this.bytes = Buffer.allocUnsafeSlow(FIRST_CAPACITY_BYTES);
    return taken;
  }

  room(octets: number): void {
    const needed = this.length + octets;
    if (needed <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }

  octets(octets: Buffer): void {
    this.room(octets.length);
    octets.copy(this.bytes, this.length);
    this.length += octets.length;
  }

  /** `payloadBytes` octets must follow at once. */
  dataHeader(streamId: number, payloadBytes: number, endStream: boolean): void {
    this.#header(payloadBytes, FrameType.DATA, endStream ? Flag.END_STREAM : 0, streamId);
  }

  /** Returns the start for `endHeaders`, which follows the block. */
  beginHeaders(): number {
    this.room(FRAME_HEADER_BYTES);
    const start = this.length;
    this.length += FRAME_HEADER_BYTES;
    return start;
  }

  /**
   * Adds CONTINUATION if needed.
   * @param frameBytes the peer's SETTINGS_MAX_FRAME_SIZE
   */
  endHeaders(start: number, streamId: number, endStream: boolean, frameBytes: number): void {
    const blockStart = start + FRAME_HEADER_BYTES;
    const blockBytes = this.length - blockStart;
    const flags = endStream ? Flag.END_STREAM : 0;
    if (blockBytes <= frameBytes) {
      this.#headerAt(start, blockBytes, FrameType.HEADERS, flags | Flag.END_HEADERS, streamId);
      return;
    }
    const continuations = Math.ceil(blockBytes / frameBytes) - 1;
    this.room(continuations * FRAME_HEADER_BYTES);
    // From the last, each moves by the headers before it.
    for (let index = continuations; index > 0; index--) {
      const from = blockStart + index * frameBytes;
      const to = Math.min(from + frameBytes, blockStart + blockBytes);
      const target = from + index * FRAME_HEADER_BYTES;
      this.bytes.copyWithin(target, from, to);
      const last = index === continuations;
      this.#headerAt(
        target - FRAME_HEADER_BYTES,
        to - from,
        FrameType.CONTINUATION,
        last ? Flag.END_HEADERS : 0,
        streamId,
      );
    }
    this.#headerAt(start, frameBytes, FrameType.HEADERS, flags, streamId);
    this.length += continuations * FRAME_HEADER_BYTES;
  }

  reset(streamId: number, code: ErrorCode): void {
    this.#header(4, FrameType.RST_STREAM, 0, streamId);
    this.#number(code);
  }

  settings(settings: readonly (readonly [identifier: number, value: number])[]): void {
    this.#header(settings.length * 6, FrameType.SETTINGS, 0, 0);
    for (const [identifier, value] of settings) {
      this.room(6);
      this.length = this.bytes.writeUInt16BE(identifier, this.length);
      this.#number(value);
    }
  }

  settingsAck(): void {
    this.#header(0, FrameType.SETTINGS, Flag.ACK, 0);
  }

  /** @param opaque eight octets */
  ping(ack: boolean, opaque: Buffer): void {
    this.#header(8, FrameType.PING, ack ? Flag.ACK : 0, 0);
    this.octets(opaque);
  }

  goaway(lastStreamId: number, code: ErrorCode): void {
    this.#header(8, FrameType.GOAWAY, 0, 0);
    this.#number(lastStreamId);
    this.#number(code);
  }

  /** @param streamId 0 for the connection's window */
  windowUpdate(streamId: number, increment: number): void {
    this.#header(4, FrameType.WINDOW_UPDATE, 0, streamId);
    this.#number(increment);
  }

  #header(payloadBytes: number, type: number, flags: number, streamId: number): void {
    this.room(FRAME_HEADER_BYTES);
    this.#headerAt(this.length, payloadBytes, type, flags, streamId);
    this.length += FRAME_HEADER_BYTES;
  }

  #headerAt(at: number, payloadBytes: number, type: number, flags: number, streamId: number): void {
    const { bytes } = this;
    bytes[at] = payloadBytes >>> 16;
    bytes[at + 1] = payloadBytes >>> 8;
    bytes[at + 2] = payloadBytes;
    bytes[at + 3] = type;
    bytes[at + 4] = flags;
    bytes[at + 5] = streamId >>> 24;
    bytes[at + 6] = streamId >>> 16;
    bytes[at + 7] = streamId >>> 8;
    bytes[at + 8] = streamId;
  }

  #number(value: number): void {
    this.room(4);
    this.length = this.bytes.writeUInt32BE(value, this.length);
  }
}
