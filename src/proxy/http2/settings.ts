/** RFC 9113 §3.4, §6.5, RFC 8441 §3 */

import type { FaultReason } from './errors.ts';
import { MAX_31_BITS, MAX_MAX_FRAME_BYTES, MIN_MAX_FRAME_BYTES } from './frames.ts';

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

/** Either role may set what the other may not. */
export type Role = 'client' | 'server';

export class PeerSettings {
  headerTableBytes = DEFAULT_HEADER_TABLE_BYTES;
  /** Unbounded until the peer says otherwise. */
  maxConcurrentStreams = Number.POSITIVE_INFINITY;
  /** A change shifts the windows of open streams, too. */
  initialWindowBytes = DEFAULT_WINDOW_BYTES;
  /** The largest payload of a frame. */
  maxFrameBytes = MIN_MAX_FRAME_BYTES;
  /** Advisory. */
  maxFieldSectionBytes = Number.POSITIVE_INFINITY;
  enableConnectProtocol = false;

  /** Its decoder may insist on hearing of it (RFC 7541 §4.2). */
  smallestHeaderTableBytes = DEFAULT_HEADER_TABLE_BYTES;

  readonly role: Role;

  constructor(role: Role) {
    this.role = role;
  }

  /** @returns what ends the connection; otherwise acknowledge it. */
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

/** No HTTP/1.1 reader takes it for a request. */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** `partial` may still become either. */
type PrefaceResult = 'http2' | 'other' | 'partial';

/** @param octets all since the connection was made. */
export function checkPreface(octets: Buffer): PrefaceResult {
  const length = Math.min(octets.length, PREFACE.length);
  if (PREFACE.compare(octets, 0, length, 0, length) !== 0) return 'other';
  return length === PREFACE.length ? 'http2' : 'partial';
}

/** Reads connections that must be HTTP/2. Frames begin once it is `complete`. */
export class PrefaceReader {
  #matched = 0;

  get complete(): boolean {
    return this.#matched === PREFACE.length;
  }

  /** The first octet not taken; −1 if one is not the preface's. */
  read(chunk: Buffer, start: number): number {
    const length = Math.min(chunk.length - start, PREFACE.length - this.#matched);
    if (PREFACE.compare(chunk, start, start + length, this.#matched, this.#matched + length) !== 0) return -1;
    this.#matched += length;
    return start + length;
  }
}
