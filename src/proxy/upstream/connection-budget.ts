/** Bounds on connections to upstreams: how many there are, for how long each is used again, and what one may bring. */

import { type Fields, fieldValues, hasField } from '../http/fields.ts';
import type { HeadLimits } from '../http1/field-section.ts';
import { DEFAULT_ABUSE_LIMITS } from '../http2/abuse.ts';
import type { ConnectionLimits } from '../http2/connection-output.ts';
import { FIELD_OVERHEAD_BYTES } from '../http2/fields.ts';

/** A holder of idle connections that can be closed. */
export interface IdleHolder {
  /** Closes the connection that has been idle longest; says whether there was one. */
  closeOldestIdle(): boolean;
}

/**
 * Counts the upstream connections of all pools. As many may be in use as the app may have connections; idle ones make
 * room for them, so that what one route keeps idle takes descriptors from no other route, nor from a probe.
 */
export class OpenUpstreams {
  readonly #most: number;
  readonly #holders = new Set<IdleHolder>();
  /** To be called when another connection may be made. */
  readonly #turnedAway = new Set<() => void>();
  #telling = false;
  #open = 0;

  /** @param most open at once while any of them is idle. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Includes a pool's connections from here on. */
  add(holder: IdleHolder): void {
    this.#holders.add(holder);
  }

  remove(holder: IdleHolder): void {
    this.#holders.delete(holder);
  }

  /** Whether another may be made: there is room, or an idle one makes some. */
  mayOpen(): boolean {
    if (this.#open >= this.#most) this.#makeRoom();
    return this.#open < this.#most;
  }

  /** The most open at once while any of them is idle. */
  get most(): number {
    return this.#most;
  }

  /** One more is being made. */
  opened(): void {
    this.#open += 1;
    if (this.#open > this.#most) this.#makeRoom();
  }

  closed(): void {
    this.#open -= 1;
    this.#tellOfRoom();
  }

  /** A connection no longer carries a request: it may make room. */
  idled(): void {
    this.#tellOfRoom();
  }

  /**
   * Calls back, once, when a connection has closed or become idle: `mayOpen` may answer differently then.
   * @param callback is called in a turn of its own; the same one is kept once.
   */
  tellOfRoom(callback: () => void): void {
    this.#turnedAway.add(callback);
  }

  #tellOfRoom(): void {
    if (this.#turnedAway.size === 0 || this.#telling) return;
    this.#telling = true;
    setImmediate(() => {
      this.#telling = false;
      const turnedAway = [...this.#turnedAway];
      this.#turnedAway.clear();
      for (const callback of turnedAway) callback();
    });
  }

  #makeRoom(): void {
    for (const holder of this.#holders) {
      if (!holder.closeOldestIdle()) continue;
      // Next time it is another's turn.
      this.#holders.delete(holder);
      this.#holders.add(holder);
      return;
    }
  }
}

/** Just under the minute after which common load balancers silently drop an idle connection. */
export const IDLE_MS = 55_000;

/** A request must reach the upstream before it closes. */
const MARGIN_MS = 1_000;

/** The part used of a timeout that is too short for the margin. */
const USED_OF_SHORT = 0.5;

const TIMEOUT = /(?:^|[,;\s])timeout=(\d{1,6})(?:$|[,;\s])/i;

/**
 * How long a connection may be reused after an answer with these fields, in ms: less than the upstream says in
 * `Keep-Alive: timeout=…` (RFC 2068 §19.7.1.1), which many servers send and few exceed. A request that meets a closing
 * connection is lost unless it may be sent twice.
 */
export function reusableForMs(fields: Fields): number {
  if (!hasField(fields, 'keep-alive')) return IDLE_MS;
  const seconds = TIMEOUT.exec(fieldValues(fields, 'keep-alive').join(', '))?.[1];
  if (seconds === undefined) return IDLE_MS;
  const timeoutMs = Number(seconds) * 1000;
  return Math.min(IDLE_MS, Math.max(timeoutMs * USED_OF_SHORT, timeoutMs - MARGIN_MS));
}

/**
 * How long a connection takes new requests, so that a change of the name's addresses, or of who listens there, reaches
 * every connection. Up to a fifth less, at random, so that those made together do not end together.
 */
const MAX_AGE_MS = 5 * 60_000;
const MAX_AGE_JITTER = 0.2;

/**
 * The maximum age of one connection.
 * @param random a number in [0, 1).
 */
export function maxAgeMs(random: () => number): number {
  return MAX_AGE_MS * (1 - MAX_AGE_JITTER * random());
}

/** Answers may have larger heads than the app may send: cookies and policies make them so. */
export const ANSWER_LIMITS: HeadLimits = { headerBytes: 128 * 1024, headerCount: 1000, targetBytes: 0 };

/** As HTTP/2 counts them. */
export const SECTION_BYTES = ANSWER_LIMITS.headerBytes + ANSWER_LIMITS.headerCount * FIELD_OVERHEAD_BYTES;

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
