/** Bounds on what one connection to an upstream may bring. */

import type { HeadLimits } from '../http1/field-section.ts';
import { DEFAULT_ABUSE_LIMITS } from '../http2/abuse.ts';
import type { ConnectionLimits } from '../http2/connection-output.ts';
import { FIELD_OVERHEAD_BYTES } from '../http2/fields.ts';

/** Answers may have larger heads than the app may send: cookies and policies make them so. */
export const ANSWER_LIMITS: HeadLimits = { headerBytes: 128 * 1024, headerCount: 1000, targetBytes: 0 };

const SECTION_BYTES = ANSWER_LIMITS.headerBytes + ANSWER_LIMITS.headerCount * FIELD_OVERHEAD_BYTES;

/** Over HTTP/2: heads as large as over HTTP/1.1, and bodies as the windows allow. */
export const HTTP2_ANSWER_LIMITS: ConnectionLimits = {
  frames: { frameBytes: 16_384, blockBytes: SECTION_BYTES, continuations: 32 },
  section: { sectionBytes: SECTION_BYTES, sectionFields: ANSWER_LIMITS.headerCount },
  tableBytes: 4096,
  targetBytes: 0,
  // Nobody pushes.
  maxStreams: 0,
  streamWindowBytes: 256 * 1024,
  connectionWindowBytes: 1024 * 1024,
  abuse: DEFAULT_ABUSE_LIMITS,
};
