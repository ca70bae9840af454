/**
 * Finds frames (RFC 9113 §4, §6). Call `read` from `position` until it returns undefined; after a
 * connection_fault it is of no use. Splits of the stream change nothing but the pieces of DATA. At most one
 * payload is held, or `blockBytes` of a field block.
 */

import {
  type ConnectionFault,
  connectionFault,
  type Fault,
  type FaultReason,
  streamFault,
} from './errors.ts';
import {
  type DataPiece,
  Flag,
  FRAME_HEADER_BYTES,
  type Frame,
  FrameType,
  type HeadersFrame,
  type IgnoredFrame,
  MAX_31_BITS,
  type SettingsAck,
} from './frames.ts';

export interface FrameLimits extends BlockLimits {
  /** This side's SETTINGS_MAX_FRAME_SIZE, or 16 384. */
  readonly frameBytes: number;
}

const IGNORED: IgnoredFrame = { kind: 'ignored' };
const SETTINGS_ACK: SettingsAck = { kind: 'settings_ack' };
const NOTHING = Buffer.alloc(0);

/** Exclusive flag, stream dependency and weight. */
const PRIORITY_BYTES = 5;

export class FrameReader {
  /** Index in the last chunk of the first octet not taken. */
  position = 0;

  readonly #limits: FrameLimits;
  readonly #block: BlockAssembly;
  readonly #header = Buffer.alloc(FRAME_HEADER_BYTES);
  #headerBytes = 0;
  #length = 0;
  #type = 0;
  #flags = 0;
  #streamId = 0;
  /** A payload in pieces; if it is not held, only `#taken` counts it. */
  #held = NOTHING;
  #taken = 0;
  /** −1 until it is known. */
  #padding = 0;
  #unreported = 0;

  constructor(limits: FrameLimits) {
    this.#limits = limits;
    this.#block = new BlockAssembly(limits);
  }

  /** If so, the peer is slow or gone, not idle. */
  get started(): boolean {
    return this.#headerBytes > 0 || this.#block.streamId !== 0;
  }

  get heldBytes(): number {
    return this.#block.heldBytes;
  }

  /** DATA is passed on as far as it came. */
  get midData(): boolean {
    return this.#headerBytes === FRAME_HEADER_BYTES && this.#type === FrameType.DATA;
  }

  /** Undefined once all of the chunk is taken. */
  read(chunk: Buffer, start: number): Frame | undefined {
    let at = start;
    for (;;) {
      if (this.#headerBytes < FRAME_HEADER_BYTES) {
        at = this.#readHeader(chunk, at);
        this.position = at;
        if (this.#headerBytes < FRAME_HEADER_BYTES) return undefined;
        const fault = this.#headerFault();
        if (fault !== undefined) return connectionFault(fault);
        if (this.#type === FrameType.DATA) this.#beginData();
      }
      const frame = this.#type === FrameType.DATA ? this.#readData(chunk, at) : this.#readPayload(chunk, at);
      at = this.position;
      if (frame !== undefined) return frame;
      if (this.#headerBytes === FRAME_HEADER_BYTES) return undefined;
    }
  }

  #readHeader(chunk: Buffer, at: number): number {
    if (this.#headerBytes === 0 && chunk.length - at >= FRAME_HEADER_BYTES) {
      this.#setHeader(chunk, at);
      return at + FRAME_HEADER_BYTES;
    }
    const end = Math.min(chunk.length, at + FRAME_HEADER_BYTES - this.#headerBytes);
    chunk.copy(this.#header, this.#headerBytes, at, end);
    this.#headerBytes += end - at;
    if (this.#headerBytes === FRAME_HEADER_BYTES) this.#setHeader(this.#header, 0);
    return end;
  }

  #setHeader(bytes: Buffer, at: number): void {
    this.#headerBytes = FRAME_HEADER_BYTES;
    this.#length =
      ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
    this.#type = bytes[at + 3] as number;
    this.#flags = bytes[at + 4] as number;
    this.#streamId = numberAt(bytes, at + 5) & MAX_31_BITS;
    this.#taken = 0;
  }

  /** All of these faults end the connection. */
  #headerFault(): FaultReason | undefined {
    if (this.#block.streamId !== 0) {
      if (this.#type !== FrameType.CONTINUATION) return 'continuation_missing';
      if (this.#streamId !== this.#block.streamId) return 'continuation_unexpected';
    }
    // The sender has not read SETTINGS: its payload is not awaited.
    if (this.#length > this.#limits.frameBytes) return 'frame_too_large';
    const onStream = this.#streamId !== 0;
    switch (this.#type) {
      case FrameType.DATA:
      case FrameType.HEADERS:
      case FrameType.PRIORITY:
        return onStream ? undefined : 'stream_missing';
      case FrameType.RST_STREAM:
        if (!onStream) return 'stream_missing';
        return this.#length === 4 ? undefined : 'frame_length_wrong';
      case FrameType.SETTINGS:
        if (onStream) return 'stream_unexpected';
        if (this.#has(Flag.ACK)) return this.#length === 0 ? undefined : 'frame_length_wrong';
        return this.#length % 6 === 0 ? undefined : 'frame_length_wrong';
      case FrameType.PUSH_PROMISE:
        return 'push_refused';
      case FrameType.PING:
        if (onStream) return 'stream_unexpected';
        return this.#length === 8 ? undefined : 'frame_length_wrong';
      case FrameType.GOAWAY:
        if (onStream) return 'stream_unexpected';
        return this.#length >= 8 ? undefined : 'frame_length_wrong';
      case FrameType.WINDOW_UPDATE:
        return this.#length === 4 ? undefined : 'frame_length_wrong';
      case FrameType.CONTINUATION:
        return this.#block.streamId === 0 ? 'continuation_unexpected' : undefined;
      default:
        return undefined;
    }
  }

  #beginData(): void {
    this.#padding = this.#has(Flag.PADDED) ? -1 : 0;
    this.#unreported = 0;
  }

  #readData(chunk: Buffer, start: number): DataPiece | Fault | undefined {
    let at = start;
    if (this.#padding === -1) {
      if (this.#length === 0) return connectionFault('frame_length_wrong');
      if (at === chunk.length) return undefined;
      this.#padding = chunk[at++] as number;
      if (this.#padding >= this.#length) return connectionFault('padding_too_long');
      this.#taken = 1;
      this.#unreported = 1;
    }
    const first = this.#has(Flag.PADDED) ? 1 : 0;
    const dataLength = this.#length - first - this.#padding;
    const dataEnd = Math.min(chunk.length, at + Math.max(0, first + dataLength - this.#taken));
    const end = Math.min(chunk.length, at + this.#length - this.#taken);
    this.#taken += end - at;
    this.#unreported += end - at;
    this.position = end;
    const whole = this.#taken === this.#length;
    if (whole) this.#headerBytes = 0;
    else if (dataEnd === at) return undefined;

    const windowBytes = this.#unreported;
    this.#unreported = 0;
    const endStream = whole && this.#has(Flag.END_STREAM);
    return {
      kind: 'data',
      streamId: this.#streamId,
      data: dataEnd === at ? NOTHING : chunk.subarray(at, dataEnd),
      windowBytes,
      last: whole,
      endStream,
      empty: dataLength === 0 && !endStream,
    };
  }

  #readPayload(chunk: Buffer, at: number): Frame | undefined {
    const end = Math.min(chunk.length, at + this.#length - this.#taken);
    this.position = end;
    if (this.#taken === 0 && end - at === this.#length) return this.#finish(chunk, at, end);
    // Unknown types are not held.
    if (this.#type <= FrameType.CONTINUATION) {
      if (this.#taken === 0) this.#held = Buffer.allocUnsafe(this.#length);
      chunk.copy(this.#held, this.#taken, at, end);
    }
    this.#taken += end - at;
    if (this.#taken < this.#length) return undefined;
    const held = this.#held;
    this.#held = NOTHING;
    return this.#finish(held, 0, this.#length);
  }

  /** Undefined if more of its field block is to come. */
  #finish(bytes: Buffer, start: number, end: number): Frame | undefined {
    this.#headerBytes = 0;
    const streamId = this.#streamId;
    switch (this.#type) {
      case FrameType.HEADERS:
        return this.#headers(bytes, start, end);
      case FrameType.CONTINUATION:
        return this.#block.append(bytes, start, end, this.#has(Flag.END_HEADERS));
      case FrameType.PRIORITY:
        if (this.#length !== PRIORITY_BYTES) return streamFault(streamId, 'frame_length_wrong');
        return this.#dependsOnItself(bytes, start) ? streamFault(streamId, 'self_dependency') : IGNORED;
      case FrameType.RST_STREAM:
        return { kind: 'reset', streamId, code: numberAt(bytes, start) >>> 0 };
      case FrameType.SETTINGS:
        return this.#has(Flag.ACK) ? SETTINGS_ACK : { kind: 'settings', payload: bytes.subarray(start, end) };
      case FrameType.PING:
        return { kind: 'ping', ack: this.#has(Flag.ACK), opaque: bytes.subarray(start, end) };
      case FrameType.GOAWAY:
        return {
          kind: 'goaway',
          lastStreamId: numberAt(bytes, start) & MAX_31_BITS,
          code: numberAt(bytes, start + 4) >>> 0,
          debugData: bytes.subarray(start + 8, end),
        };
      case FrameType.WINDOW_UPDATE: {
        const increment = numberAt(bytes, start) & MAX_31_BITS;
        if (increment > 0) return { kind: 'window_update', streamId, increment };
        return streamId === 0 ? connectionFault('increment_zero') : streamFault(streamId, 'increment_zero');
      }
      default:
        return IGNORED;
    }
  }

  #headers(bytes: Buffer, start: number, end: number): Frame | undefined {
    let from = start;
    let padding = 0;
    if (this.#has(Flag.PADDED)) {
      if (from === end) return connectionFault('frame_length_wrong');
      padding = bytes[from++] as number;
    }
    let selfDependent = false;
    if (this.#has(Flag.PRIORITY)) {
      if (end - from < PRIORITY_BYTES) return connectionFault('frame_length_wrong');
      selfDependent = this.#dependsOnItself(bytes, from);
      from += PRIORITY_BYTES;
    }
    if (padding > end - from) return connectionFault('padding_too_long');
    this.#block.begin(this.#streamId, this.#has(Flag.END_STREAM), selfDependent);
    return this.#block.append(bytes, from, end - padding, this.#has(Flag.END_HEADERS));
  }

  #dependsOnItself(bytes: Buffer, at: number): boolean {
    return (numberAt(bytes, at) & MAX_31_BITS) === this.#streamId;
  }

  #has(flag: number): boolean {
    return (this.#flags & flag) !== 0;
  }
}

function numberAt(bytes: Buffer, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  );
}

interface BlockLimits {
  /** More end the connection, since an undecoded field block leaves the tables out of step. */
  readonly blockBytes: number;
  /** Per block, empty ones included (CVE-2024-27316). */
  readonly continuations: number;
}

const FIRST_CAPACITY_BYTES = 1024;

/** Copies only blocks that come in several frames. */
class BlockAssembly {
  /** The stream of the unfinished block, or 0. */
  streamId = 0;

  readonly #limits: BlockLimits;
  #endStream = false;
  #selfDependent = false;
  #bytes = NOTHING;
  #length = 0;
  #frames = 0;

  constructor(limits: BlockLimits) {
    this.#limits = limits;
  }

  get heldBytes(): number {
    return this.#bytes.length;
  }

  begin(streamId: number, endStream: boolean, selfDependent: boolean): void {
    this.streamId = streamId;
    this.#endStream = endStream;
    this.#selfDependent = selfDependent;
    this.#length = 0;
    this.#frames = 0;
  }

  /** Gives the frame once its `last` has come. */
  append(
    bytes: Buffer,
    start: number,
    end: number,
    last: boolean,
  ): HeadersFrame | ConnectionFault | undefined {
    if (this.#frames++ > this.#limits.continuations) return connectionFault('continuation_flood');
    if (this.#length + end - start > this.#limits.blockBytes) return connectionFault('block_too_large');
    if (last && this.#frames === 1) return this.#finish(bytes.subarray(start, end));
    this.#hold(bytes, start, end);
    if (!last) return undefined;
    const block = this.#bytes.subarray(0, this.#length);
    this.#bytes = NOTHING;
    return this.#finish(block);
  }

  #finish(block: Buffer): HeadersFrame {
    const { streamId } = this;
    this.streamId = 0;
    return {
      kind: 'headers',
      streamId,
      block,
      endStream: this.#endStream,
      selfDependent: this.#selfDependent,
    };
  }

  #hold(bytes: Buffer, start: number, end: number): void {
    const length = this.#length + end - start;
    if (length > this.#bytes.length) {
      const capacity = Math.max(FIRST_CAPACITY_BYTES, this.#bytes.length * 2, length);
      const larger = Buffer.allocUnsafe(Math.min(capacity, this.#limits.blockBytes));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    bytes.copy(this.#bytes, this.#length, start, end);
    this.#length = length;
  }
}
