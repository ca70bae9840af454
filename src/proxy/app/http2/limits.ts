import type { ProxyLimits } from '../../../config/config.ts';
import { DEFAULT_ABUSE_LIMITS } from '../../http2/abuse.ts';
import { FIELD_OVERHEAD_BYTES } from '../../http2/field-section.ts';
import type { ServerLimits } from '../../http2/server-connection.ts';

/** The smallest that SETTINGS_MAX_FRAME_SIZE may be, and what is said of it before any SETTINGS. */
const FRAME_BYTES = 16_384;

/** Pseudo-fields of a request, which HTTP/1.1 has in its first line. */
const PSEUDO_FIELDS = 4;

/** A section that is too large by so much is still decoded, so that its request is answered and the others go on. */
const BLOCK_FACTOR = 4;

/** Of one field block; a whole one has room in five. */
const CONTINUATIONS = 32;

/** Of HPACK's table for what an app sends: what there is before any SETTINGS. */
const TABLE_BYTES = 4096;

/** Bounds on a connection of the app that speaks HTTP/2, as the configuration has them for every version. */
export function serverLimits(limits: ProxyLimits): ServerLimits {
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
    // Nothing that extended CONNECT asks for could be relayed.
    extendedConnect: false,
  };
}
