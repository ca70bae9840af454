import { type Fields, fieldValues, hasField } from '../http/fields.ts';
import type { HeadLimits } from '../http1/field-section.ts';
import { DEFAULT_ABUSE_LIMITS } from '../http2/abuse.ts';
import type { ConnectionLimits } from '../http2/connection-output.ts';
import { FIELD_OVERHEAD_BYTES } from '../http2/fields.ts';

export interface IdleHolder {
  /** Says whether a connection was idle. */
  closeOldestIdle(): boolean;
}

/**
 * Counts the connections of all pools. Idle ones make room, so that no route takes descriptors from another,
 * or from a probe.
 */
export class OpenUpstreams {
  readonly #most: number;
  readonly #holders = new Set<IdleHolder>();
  readonly #turnedAway = new Set<() => void>();
  #telling = false;
  #open = 0;

  /** @param most open at once while any of them is idle. */
  constructor(most: number) {
    this.#most = most;
  }

  add(holder: IdleHolder): void {
    this.#holders.add(holder);
  }

  remove(holder: IdleHolder): void {
    this.#holders.delete(holder);
  }

  /** May close an idle connection to make room. */
  mayOpen(): boolean {
    if (this.#open >= this.#most) this.#makeRoom();
    return this.#open < this.#most;
  }

  get most(): number {
    return this.#most;
  }

  opened(): void {
    this.#open += 1;
    if (this.#open > this.#most) this.#makeRoom();
  }

  closed(): void {
    this.#open -= 1;
    this.#tellOfRoom();
  }

  idled(): void {
    this.#tellOfRoom();
  }

  /** Calls back once, in a turn of its own, when a connection closes or becomes idle. */
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

/** Common load balancers silently drop idle connections after a minute. */
export const IDLE_MS = 55_000;

/** A request must reach the upstream before it closes. */
const MARGIN_MS = 1_000;

/** The part used of a timeout that is too short for the margin. */
const USED_OF_SHORT = 0.5;

const TIMEOUT = /(?:^|[,;\s])timeout=(\d{1,6})(?:$|[,;\s])/i;

/**
 * In ms: less than `Keep-Alive: timeout=…` says (RFC 2068 §19.7.1.1), since a request that meets a closing
 * connection may be lost.
 */
export function reusableForMs(fields: Fields): number {
  if (!hasField(fields, 'keep-alive')) return IDLE_MS;
  const seconds = TIMEOUT.exec(fieldValues(fields, 'keep-alive').join(', '))?.[1];
  if (seconds === undefined) return IDLE_MS;
  const timeoutMs = Number(seconds) * 1000;
  return Math.min(IDLE_MS, Math.max(timeoutMs * USED_OF_SHORT, timeoutMs - MARGIN_MS));
}

/**
 * So that changed addresses are noticed. Jitter keeps connections that were made together from ending
 * together.
 */
const MAX_AGE_MS = 5 * 60_000;
const MAX_AGE_JITTER = 0.2;

/** @param random a number in [0, 1). */
export function maxAgeMs(random: () => number): number {
  return MAX_AGE_MS * (1 - MAX_AGE_JITTER * random());
}

/** Cookies and policies make answers' heads large. */
export const ANSWER_LIMITS: HeadLimits = { headerBytes: 128 * 1024, headerCount: 1000, targetBytes: 0 };

/** As HTTP/2 counts them. */
export const SECTION_BYTES = ANSWER_LIMITS.headerBytes + ANSWER_LIMITS.headerCount * FIELD_OVERHEAD_BYTES;

export const HTTP2_ANSWER_LIMITS: ConnectionLimits = {
  frames: { frameBytes: 16_384, blockBytes: SECTION_BYTES, continuations: 32 },
  section: { sectionBytes: SECTION_BYTES, sectionFields: ANSWER_LIMITS.headerCount },
  tableBytes: 4096,
  targetBytes: 0,
  maxStreams: 0,
  streamWindowBytes: 256 * 1024,
  connectionWindowBytes: 1024 * 1024,
  abuse: DEFAULT_ABUSE_LIMITS,
};
