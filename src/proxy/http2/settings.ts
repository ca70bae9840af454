/** What either side says about itself in SETTINGS (RFC 9113 §6.5, RFC 8441 §3). */

import type { FaultReason } from './fault.ts';
import { MAX_31_BITS, MAX_MAX_FRAME_BYTES, MIN_MAX_FRAME_BYTES } from './frame-type.ts';

export const Setting = {
  HEADER_TABLE_SIZE: 0x1,
  ENABLE_PUSH: 0x2,
  MAX_CONCURRENT_STREAMS: 0x3,
  INITIAL_WINDOW_SIZE: 0x4,
  MAX_FRAME_SIZE: 0x5,
  MAX_HEADER_LIST_SIZE: 0x6,
  ENABLE_CONNECT_PROTOCOL: 0x8,
} as const;

/** Until SETTINGS say otherwise (RFC 9113 §6.5.2). */
export const DEFAULT_HEADER_TABLE_BYTES = 4096;
export const DEFAULT_WINDOW_BYTES = 65_535;

/** The sender: a client may set what a server may not. */
export type Role = 'client' | 'server';

/** The peer's settings, as far as they have come. */
export class PeerSettings {
  headerTableBytes = DEFAULT_HEADER_TABLE_BYTES;
  /** Streams that this side may have open at once; without bound until the peer sets one. */
  maxConcurrentStreams = Number.POSITIVE_INFINITY;
  /** Initial window of every stream for what is sent. A change also shifts the windows of all open streams. */
  initialWindowBytes = DEFAULT_WINDOW_BYTES;
  /** Largest payload of a frame that may be sent. */
  maxFrameBytes = MIN_MAX_FRAME_BYTES;
  /** The largest field section that the peer wants to receive; advisory. */
  maxFieldSectionBytes = Number.POSITIVE_INFINITY;
  /** Whether extended CONNECT may be sent to it. */
  enableConnectProtocol = false;

  /** The smallest table size ever announced: the peer's decoder may insist on hearing of it (RFC 7541 §4.2). */
  smallestHeaderTableBytes = DEFAULT_HEADER_TABLE_BYTES;

  /** The peer's role. */
  readonly role: Role;

  constructor(role: Role) {
    this.role = role;
  }

  /**
   * Takes the payload of a SETTINGS frame, setting by setting in order. Unknown ones are ignored.
   * @returns what is wrong with it, which ends the connection; otherwise it must be acknowledged.
   */
  apply(payload: Buffer): FaultReason | undefined {
    for (let at = 0; at < payload.length; at += 6) {
      const fault = this.#set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  #set(identifier: number, value: number): FaultReason | undefined {
    switch (identifier) {
      case Setting.HEADER_TABLE_SIZE:
        this.headerTableBytes = value;
        this.smallestHeaderTableBytes = Math.min(this.smallestHeaderTableBytes, value);
        return undefined;
      case Setting.ENABLE_PUSH:
        return value > 1 || (value === 1 && this.role === 'server') ? 'settings_push' : undefined;
      case Setting.MAX_CONCURRENT_STREAMS:
        this.maxConcurrentStreams = value;
        return undefined;
      case Setting.INITIAL_WINDOW_SIZE:
        if (value > MAX_31_BITS) return 'settings_window';
        this.initialWindowBytes = value;
        return undefined;
      case Setting.MAX_FRAME_SIZE:
        if (value < MIN_MAX_FRAME_BYTES || value > MAX_MAX_FRAME_BYTES) return 'settings_frame_size';
        this.maxFrameBytes = value;
        return undefined;
      case Setting.MAX_HEADER_LIST_SIZE:
        this.maxFieldSectionBytes = value;
        return undefined;
      case Setting.ENABLE_CONNECT_PROTOCOL:
        if (value > 1 || (value === 0 && this.enableConnectProtocol)) return 'settings_connect';
        this.enableConnectProtocol = value === 1;
        return undefined;
      default:
        return undefined;
    }
  }
}
