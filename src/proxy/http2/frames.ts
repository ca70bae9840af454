/** Buffers are views, valid until the next `read`. */

import type { ErrorCode, Fault } from './errors.ts';

/** A part of a DATA frame (RFC 9113 §6.1). */
export interface DataPiece {
  readonly kind: 'data';
  readonly streamId: number;
  /** Without padding; may be empty. */
  readonly data: Buffer;
  /** Padding counts, too (RFC 9113 §6.9.1). */
  readonly windowBytes: number;
  /** Whether the frame ends here. */
  readonly last: boolean;
  /** True only on a frame's last piece. */
  readonly endStream: boolean;
  /** The whole frame brings neither data nor an end. */
  readonly empty: boolean;
}

/** With its CONTINUATION frames (RFC 9113 §6.2, §6.10). */
export interface HeadersFrame {
  readonly kind: 'headers';
  readonly streamId: number;
  /** Decode it whatever becomes of the stream, or the tables fall out of step. */
  readonly block: Buffer;
  readonly endStream: boolean;
  /** A stream error (RFC 7540 §5.3.1), once the block is decoded. */
  readonly selfDependent: boolean;
}

interface ResetFrame {
  readonly kind: 'reset';
  readonly streamId: number;
  readonly code: ErrorCode;
}

/** Without ACK; for `PeerSettings.apply`. */
interface SettingsFrame {
  readonly kind: 'settings';
  readonly payload: Buffer;
}

export interface SettingsAck {
  readonly kind: 'settings_ack';
}

interface PingFrame {
  readonly kind: 'ping';
  readonly ack: boolean;
  /** Eight octets. */
  readonly opaque: Buffer;
}

export interface GoawayFrame {
  readonly kind: 'goaway';
  readonly lastStreamId: number;
  readonly code: ErrorCode;
  /** Text for people (gRPC says `too_many_pings` here). */
  readonly debugData: Buffer;
}

interface WindowUpdate {
  readonly kind: 'window_update';
  /** 0 for the connection's window. */
  readonly streamId: number;
  /** 1 to 2^31-1. */
  readonly increment: number;
}

/** PRIORITY (RFC 9113 §5.3), or an unknown type (§5.5). */
export interface IgnoredFrame {
  readonly kind: 'ignored';
}

export type Frame =
  | DataPiece
  | HeadersFrame
  | ResetFrame
  | SettingsFrame
  | SettingsAck
  | PingFrame
  | GoawayFrame
  | WindowUpdate
  | IgnoredFrame
  | Fault;

/** RFC 9113 §6; all others are ignored (§5.5). */
export const FrameType = {
  DATA: 0x0,
  HEADERS: 0x1,
  PRIORITY: 0x2,
  RST_STREAM: 0x3,
  SETTINGS: 0x4,
  PUSH_PROMISE: 0x5,
  PING: 0x6,
  GOAWAY: 0x7,
  WINDOW_UPDATE: 0x8,
  CONTINUATION: 0x9,
} as const;

export const Flag = {
  /** Of DATA and HEADERS. */
  END_STREAM: 0x1,
  /** Of SETTINGS and PING. */
  ACK: 0x1,
  /** Of HEADERS and CONTINUATION. */
  END_HEADERS: 0x4,
  /** Of DATA and HEADERS. */
  PADDED: 0x8,
  /** Of HEADERS. */
  PRIORITY: 0x20,
} as const;

/** Octets (RFC 9113 §4.1). */
export const FRAME_HEADER_BYTES = 9;

/** What every endpoint takes (RFC 9113 §4.2), and the most it may announce. */
export const MIN_MAX_FRAME_BYTES = 16_384;
export const MAX_MAX_FRAME_BYTES = 16_777_215;

/** The largest stream identifier, window and increment. */
export const MAX_31_BITS = 0x7fffffff;
