import type { ProxyLimits } from '../../../config/config.ts';
import { DEFAULT_ABUSE_LIMITS } from '../../http2/abuse.ts';
import type { ConnectionLimits } from '../../http2/connection-output.ts';
import { FIELD_OVERHEAD_BYTES } from '../../http2/fields.ts';

/** The smallest SETTINGS_MAX_FRAME_SIZE, and its value before any SETTINGS. */
const FRAME_BYTES = 16_384;

/** Pseudo-fields of a request, which HTTP/1.1 has in its first line. */
const PSEUDO_FIELDS = 4;

/** A section up to this many times too large is still decoded, so that its request is answered and the others go on. */
const BLOCK_FACTOR = 2;

/** CONTINUATION frames of one field block; a whole one fits in five. */
const CONTINUATIONS = 32;

/** Size of the HPACK table for what an app sends: the default before any SETTINGS. */
const TABLE_BYTES = 4096;

/** Limits of an app's HTTP/2 connection, from those configured for every version. */
export function serverLimits(limits: ProxyLimits): ConnectionLimits {
  const sectionBytes = limits.headerBytes + limits.headerCount * FIELD_OVERHEAD_BYTES;
  const { maxStreams, streamWindowBytes, connectionWindowBytes } = limits.http2;
  return {
    frames: {
      frameBytes: FRAME_BYTES,
      blockBytes: sectionBytes * BLOCK_FACTOR,
      continuations: CONTINUATIONS,
    },
    section: { sectionBytes, sectionFields: limits.headerCount + PSEUDO_FIELDS },
    tableBytes: TABLE_BYTES,
    targetBytes: limits.targetBytes,
    maxStreams,
    streamWindowBytes,
    connectionWindowBytes,
    abuse: DEFAULT_ABUSE_LIMITS,
  };
}
