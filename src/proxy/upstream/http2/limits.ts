import { DEFAULT_ABUSE_LIMITS } from '../../http2/abuse.ts';
import type { ConnectionLimits } from '../../http2/connection-limits.ts';
import { FIELD_OVERHEAD_BYTES } from '../../http2/field-section.ts';
import { ANSWER_LIMITS } from '../http1/answer.ts';

const SECTION_BYTES = ANSWER_LIMITS.headerBytes + ANSWER_LIMITS.headerCount * FIELD_OVERHEAD_BYTES;

/** Bounds on what one upstream connection may bring: heads as large as over HTTP/1.1, and bodies as the windows allow. */
export const UPSTREAM_LIMITS: ConnectionLimits = {
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

/**
 * How much of one connection's answers slow apps may leave unread, all together, before the connection itself stops:
 * until then no app holds up another.
 */
export const MAX_UNREAD_BYTES = 8 * 1024 * 1024;

/**
 * Connections to one upstream that further requests avoid because apps have that much unread on each. With more,
 * requests wait for those apps as well: they would hold up whatever is made for those requests, too.
 */
export const MAX_SATURATED_CONNECTIONS = 3;

/** Requests on one connection at once; an upstream may allow fewer. More would wait for each other's bytes too long. */
export const MAX_STREAMS = 128;

/** Streams assumed to be allowed before the upstream's SETTINGS: the least that RFC 9113 §6.5.2 recommends. */
export const STREAMS_BEFORE_SETTINGS = 100;

/** Requests that wait for a stream of one upstream. */
export const MAX_WAITING = 1024;

/** A connection silent for this long has to answer PING before another request is sent on it. */
export const QUIET_MS = 10_000;

/** How long PING may take, unless connecting may take less. */
export const PING_MS = 2_000;

/**
 * A socket, or a window of the connection, that has taken nothing for this long is not waited for: further requests go
 * elsewhere.
 */
export const STUCK_MS = 2_000;

/** After this long it is given up: its connection closes with the requests that it carries. */
export const STUCK_FOR_GOOD_MS = 10_000;

/** How long the last bytes of a connection may take to leave. */
export const LINGER_MS = 1_000;
