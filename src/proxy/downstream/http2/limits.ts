import type { ProxyLimits } from '../../../config/config.ts';
import { DEFAULT_ABUSE_LIMITS } from '../../http2/abuse.ts';
import type { ConnectionLimits } from '../../http2/connection-output.ts';
import { FIELD_OVERHEAD_BYTES } from '../../http2/fields.ts';

/** The smallest SETTINGS_MAX_FRAME_SIZE, and the default. */
const FRAME_BYTES = 16_384;

/** Of a request; HTTP/1.1 has them in its first line. */
const PSEUDO_FIELDS = 4;

/** A section up to this many times too large is decoded, so that its request is answered. */
const BLOCK_FACTOR = 2;

/** Of one field block; a whole one fits in five. */
const CONTINUATIONS = 32;

/** HPACK's default, for what an app sends. */
const TABLE_BYTES = 4096;

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
