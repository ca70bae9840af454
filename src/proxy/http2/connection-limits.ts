import type { AbuseLimits } from './abuse.ts';
import type { FrameLimits } from './frame-reader.ts';
import type { FieldSectionLimits } from './hpack/decoder.ts';

/** Bounds on what one connection may bring. */
export interface ConnectionLimits {
  readonly frames: FrameLimits;
  readonly section: FieldSectionLimits;
  /** Size of the HPACK table for what comes, as HPACK counts it: the memory that each connection may take for it. */
  readonly tableBytes: number;
  /** Octets of `:path`. */
  readonly targetBytes: number;
  /** Streams that the peer may have open at once. */
  readonly maxStreams: number;
  /**
   * What may come and be held for one stream, and for all of them together; both at least 65 535, which a peer may send
   * before it has read SETTINGS.
   */
  readonly streamWindowBytes: number;
  readonly connectionWindowBytes: number;
  readonly abuse: AbuseLimits;
}
