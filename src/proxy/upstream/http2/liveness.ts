import type { Socket } from 'node:net';
import type { Clock, Instant } from '../../../platform/time/clock.ts';

/** After such silence, PING must be answered before another request. */
export const QUIET_MS = 10_000;

/** How long PING may take, unless connecting may take less. */
export const PING_MS = 2_000;

/** Further requests avoid a socket or window that takes nothing for so long. */
export const STALL_MS = 2_000;

/** After this long the connection closes, with its requests. */
const FATAL_STALL_MS = 10_000;

const RESETS_WINDOW_MS = 30_000;

/**
 * In one window they retire a connection. Two adjoining windows and its last `MAX_STREAMS` requests make
 * fewer than 200.
 */
const MAX_RESETS = 32;

/** What `UpstreamOutlet` tells of its connection. */
interface WayOut {
  readonly takesMore: boolean;
  /** Whether something waits for the connection's window. */
  readonly windowExhausted: boolean;
}

/** Whether a connection is worth another request. */
export class Liveness {
  readonly #out: WayOut;
  readonly #clock: Clock;
  readonly #stuck: WriteStall;
  readonly #shut = new WindowStall();
  readonly #resets = new SentResets();
  /** At first, when the connection was made. */
  #heardAt: Instant;

  constructor(socket: Waits, out: WayOut, clock: Clock, madeAt: Instant) {
    this.#out = out;
    this.#clock = clock;
    this.#stuck = new WriteStall(socket);
    this.#heardAt = madeAt;
  }

  heard(now: Instant): void {
    this.#heardAt = now;
  }

  /** Uses the clock that says more: either may have stood still. */
  quietMs(now: Instant): number {
    const { monotonicMs, wallMs } = this.#heardAt;
    return Math.max(now.monotonicMs - monotonicMs, now.wallMs - wallMs);
  }

  /** @returns whether to retire the connection. */
  reset(): boolean {
    return this.#resets.sent(this.#clock.monotonicMs());
  }

  get anyWaits(): boolean {
    return this.#stuck.anyWaits;
  }

  stuckMs(nowMs: number): number {
    return this.#stuck.stuckMs(nowMs);
  }

  get windowStuck(): boolean {
    return (
      this.#shut.watches &&
      this.#out.windowExhausted &&
      this.#shut.shutMs(this.#clock.monotonicMs()) >= STALL_MS
    );
  }

  /** Says whether the connection's window was seen shut before. */
  windowOpens(): boolean {
    const opens = this.#shut.watches && !this.#out.windowExhausted;
    if (opens) this.#shut.seen(false, this.#clock.monotonicMs());
    return opens;
  }

  /** When to look again, if something waits. */
  watch(): number | undefined {
    const { takesMore, windowExhausted } = this.#out;
    if (takesMore && !windowExhausted && !this.#shut.watches) return undefined;
    const nowMs = this.#clock.monotonicMs();
    this.#shut.seen(windowExhausted, nowMs);
    if (!takesMore) this.#stuck.stuckMs(nowMs);
    return nowMs + STALL_MS;
  }

  look(nowMs: number): 'well' | 'stuck' | 'stuck for good' {
    const stuckMs = this.#stuck.stuckMs(nowMs);
    this.#shut.seen(this.#out.windowExhausted, nowMs);
    if (stuckMs >= FATAL_STALL_MS) return 'stuck for good';
    return stuckMs >= STALL_MS || this.windowStuck ? 'stuck' : 'well';
  }

  get watches(): boolean {
    return this.#stuck.watches || this.#shut.watches;
  }
}

type Waits = Pick<Socket, 'writableLength' | 'bytesWritten'>;

/** Sockets do not report that the system takes some. */
class WriteStall {
  readonly #socket: Waits;
  #waits: { readonly sinceMs: number; readonly takenBytes: number } | undefined;

  constructor(socket: Waits) {
    this.#socket = socket;
  }

  get anyWaits(): boolean {
    return this.#socket.writableLength > 0;
  }

  /** How long the system has been seen to take nothing, in ms. */
  stuckMs(nowMs: number): number {
    if (!this.anyWaits) {
      this.#waits = undefined;
      return 0;
    }
    const takenBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    if (this.#waits?.takenBytes !== takenBytes) this.#waits = { sinceMs: nowMs, takenBytes };
    return nowMs - this.#waits.sinceMs;
  }

  get watches(): boolean {
    return this.#waits !== undefined;
  }
}

/** Watches the connection's window. */
class WindowStall {
  #sinceMs: number | undefined;

  seen(isShut: boolean, nowMs: number): void {
    if (!isShut) this.#sinceMs = undefined;
    else this.#sinceMs ??= nowMs;
  }

  get watches(): boolean {
    return this.#sinceMs !== undefined;
  }

  shutMs(nowMs: number): number {
    return this.#sinceMs === undefined ? 0 : nowMs - this.#sinceMs;
  }
}

/**
 * Servers end a connection after too many (rapid reset, CVE-2023-44487): Netty, and so grpc-java, at the
 * 201st in 30 s, the lowest known bound.
 */
class SentResets {
  #count = 0;
  #windowEndsAtMs = Number.NEGATIVE_INFINITY;

  /** @returns whether to retire the connection. */
  sent(nowMs: number): boolean {
    if (nowMs >= this.#windowEndsAtMs) {
      this.#windowEndsAtMs = nowMs + RESETS_WINDOW_MS;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count >= MAX_RESETS;
  }
}
