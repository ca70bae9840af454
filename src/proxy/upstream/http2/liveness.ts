import type { Socket } from 'node:net';
import type { Clock, Instant } from '../../../platform/time/clock.ts';

/** A connection silent for this long must answer PING before it carries another request. */
export const QUIET_MS = 10_000;

/** How long PING may take, unless connecting may take less. */
export const PING_MS = 2_000;

/** If a socket or the connection's window takes nothing for this long, further requests go elsewhere. */
export const STUCK_MS = 2_000;

/** Then the connection closes, with its requests. */
const STUCK_FOR_GOOD_MS = 10_000;

const RESETS_WINDOW_MS = 30_000;

/**
 * Resets in one window that retire a connection. Over two adjoining windows, with its remaining `MAX_STREAMS`
 * requests, it sends fewer than 200.
 */
const MAX_RESETS = 32;

/** What `UpstreamOutlet` tells of a connection. */
interface WayOut {
  readonly takesMore: boolean;
  /** Whether something waits while the connection's window is shut. */
  readonly windowShut: boolean;
}

/**
 * Judges whether an HTTP/2 connection is worth another request: by silence, by stuck socket or window, and by
 * resets.
 */
export class Liveness {
  readonly #out: WayOut;
  readonly #clock: Clock;
  readonly #stuck: StuckSocket;
  readonly #shut = new ShutWindow();
  readonly #resets = new SentResets();
  /** When something last came, or the connection was made. */
  #heardAt: Instant;

  constructor(socket: Waits, out: WayOut, clock: Clock, madeAt: Instant) {
    this.#out = out;
    this.#clock = clock;
    this.#stuck = new StuckSocket(socket);
    this.#heardAt = madeAt;
  }

  heard(now: Instant): void {
    this.#heardAt = now;
  }

  /** By the clock that says more: either may have stood still. */
  quietMs(now: Instant): number {
    const { monotonicMs, wallMs } = this.#heardAt;
    return Math.max(now.monotonicMs - monotonicMs, now.wallMs - wallMs);
  }

  /** @returns whether the connection may carry no further requests. */
  reset(): boolean {
    return this.#resets.sent(this.#clock.monotonicMs());
  }

  get anyWaits(): boolean {
    return this.#stuck.anyWaits;
  }

  stuckMs(nowMs: number): number {
    return this.#stuck.stuckMs(nowMs);
  }

  /** Whether the connection's window was shut for so long that requests go elsewhere. */
  get windowStuck(): boolean {
    return (
      this.#shut.watches && this.#out.windowShut && this.#shut.shutMs(this.#clock.monotonicMs()) >= STUCK_MS
    );
  }

  /** A window has grown; says whether it was the connection's, and had been seen shut. */
  windowOpens(): boolean {
    const opens = this.#shut.watches && !this.#out.windowShut;
    if (opens) this.#shut.seen(false, this.#clock.monotonicMs());
    return opens;
  }

  /** When to look at socket and window, if something waits for them. */
  watch(): number | undefined {
    const { takesMore, windowShut } = this.#out;
    if (takesMore && !windowShut && !this.#shut.watches) return undefined;
    const nowMs = this.#clock.monotonicMs();
    this.#shut.seen(windowShut, nowMs);
    if (!takesMore) this.#stuck.stuckMs(nowMs);
    return nowMs + STUCK_MS;
  }

  look(nowMs: number): 'well' | 'stuck' | 'stuck for good' {
    const stuckMs = this.#stuck.stuckMs(nowMs);
    this.#shut.seen(this.#out.windowShut, nowMs);
    if (stuckMs >= STUCK_FOR_GOOD_MS) return 'stuck for good';
    return stuckMs >= STUCK_MS || this.windowStuck ? 'stuck' : 'well';
  }

  /** Whether something waited at the last look. */
  get watches(): boolean {
    return this.#stuck.watches || this.#shut.watches;
  }
}

type Waits = Pick<Socket, 'writableLength' | 'bytesWritten'>;

/** Watches what waits in a socket: it does not report when the system takes some. */
class StuckSocket {
  readonly #socket: Waits;
  #waits: { readonly sinceMs: number; readonly takenBytes: number } | undefined;

  constructor(socket: Waits) {
    this.#socket = socket;
  }

  get anyWaits(): boolean {
    return this.#socket.writableLength > 0;
  }

  /** For how many ms the system has been seen to take nothing though something waited. */
  stuckMs(nowMs: number): number {
    if (!this.anyWaits) {
      this.#waits = undefined;
      return 0;
    }
    const takenBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    if (this.#waits?.takenBytes !== takenBytes) this.#waits = { sinceMs: nowMs, takenBytes };
    return nowMs - this.#waits.sinceMs;
  }

  /** Whether something waited at the last look. */
  get watches(): boolean {
    return this.#waits !== undefined;
  }
}

/** How long the connection's window has held back what its requests have to send. */
class ShutWindow {
  #sinceMs: number | undefined;

  seen(isShut: boolean, nowMs: number): void {
    if (!isShut) this.#sinceMs = undefined;
    else this.#sinceMs ??= nowMs;
  }

  /** Whether it was shut when last seen. */
  get watches(): boolean {
    return this.#sinceMs !== undefined;
  }

  shutMs(nowMs: number): number {
    return this.#sinceMs === undefined ? 0 : nowMs - this.#sinceMs;
  }
}

/**
 * Counts resets sent on one connection. Servers end a connection after too many (rapid reset,
 * CVE-2023-44487): Netty, and so grpc-java, at the 201st in 30 s, the lowest known bound.
 */
class SentResets {
  #count = 0;
  #windowEndsAtMs = Number.NEGATIVE_INFINITY;

  /** @returns whether the connection may carry no further requests. */
  sent(nowMs: number): boolean {
    if (nowMs >= this.#windowEndsAtMs) {
      this.#windowEndsAtMs = nowMs + RESETS_WINDOW_MS;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count >= MAX_RESETS;
  }
}
