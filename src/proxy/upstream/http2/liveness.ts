import type { Socket } from 'node:net';
import type { Clock, Instant } from '../../../platform/time/clock.ts';

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
const STUCK_FOR_GOOD_MS = 10_000;

/** How long resets count. */
const RESETS_WINDOW_MS = 30_000;

/**
 * Resets in one window that retire a connection. Around the end of a window twice as many may come, and then one for each
 * of the requests (`MAX_STREAMS`) that it still carries: fewer than 200 in all.
 */
const MAX_RESETS = 32;

/** What a connection's way out says of it, as `UpstreamOutlet` does. */
interface WayOut {
  /** Whether the socket takes more. */
  readonly takesMore: boolean;
  /** Whether something waits, and the window that all requests share lets nothing leave. */
  readonly windowShut: boolean;
}

/**
 * Whether an HTTP/2 connection is worth another request: how long its upstream has been silent, whether its socket or its
 * window has long taken nothing, and how many of its streams were reset.
 */
export class Liveness {
  readonly #out: WayOut;
  readonly #clock: Clock;
  readonly #stuck: StuckSocket;
  readonly #shut = new ShutWindow();
  readonly #resets = new SentResets();
  /** When something came last, or the connection was made. */
  #heardAt: Instant;

  constructor(socket: Waits, out: WayOut, clock: Clock, madeAt: Instant) {
    this.#out = out;
    this.#clock = clock;
    this.#stuck = new StuckSocket(socket);
    this.#heardAt = madeAt;
  }

  /** Something has come. */
  heard(now: Instant): void {
    this.#heardAt = now;
  }

  /** How long nothing has come, by the clock that says more: either may have stood still. */
  quietMs(now: Instant): number {
    const { monotonicMs, wallMs } = this.#heardAt;
    return Math.max(now.monotonicMs - monotonicMs, now.wallMs - wallMs);
  }

  /** A stream has been reset. @returns whether the connection may carry no further requests. */
  reset(): boolean {
    return this.#resets.sent(this.#clock.monotonicMs());
  }

  /** Whether something waits in the socket at this moment. */
  get anyWaits(): boolean {
    return this.#stuck.anyWaits;
  }

  /** As in `StuckSocket`. */
  stuckMs(nowMs: number): number {
    return this.#stuck.stuckMs(nowMs);
  }

  /** Whether the connection's window has let nothing leave for so long that requests go elsewhere. */
  get windowStuck(): boolean {
    return (
      this.#shut.watches && this.#out.windowShut && this.#shut.shutMs(this.#clock.monotonicMs()) >= STUCK_MS
    );
  }

  /** A window has grown; says whether it is the connection's, which had been seen shut. */
  windowOpens(): boolean {
    const opens = this.#shut.watches && !this.#out.windowShut;
    if (opens) this.#shut.seen(false, this.#clock.monotonicMs());
    return opens;
  }

  /** Watches socket and window if something waits for them; says when to look at them. */
  watch(): number | undefined {
    const { takesMore, windowShut } = this.#out;
    if (takesMore && !windowShut && !this.#shut.watches) return undefined;
    const nowMs = this.#clock.monotonicMs();
    this.#shut.seen(windowShut, nowMs);
    if (!takesMore) this.#stuck.stuckMs(nowMs);
    return nowMs + STUCK_MS;
  }

  /** Looks at socket and window: have they taken nothing for so long that requests go elsewhere, or that it is given up? */
  look(nowMs: number): 'well' | 'stuck' | 'stuck for good' {
    const stuckMs = this.#stuck.stuckMs(nowMs);
    this.#shut.seen(this.#out.windowShut, nowMs);
    if (stuckMs >= STUCK_FOR_GOOD_MS) return 'stuck for good';
    return stuckMs >= STUCK_MS || this.windowStuck ? 'stuck' : 'well';
  }

  /** Whether something waited at the last look, so that another is needed. */
  get watches(): boolean {
    return this.#stuck.watches || this.#shut.watches;
  }
}

/** What a socket reveals about what waits in it. */
type Waits = Pick<Socket, 'writableLength' | 'bytesWritten'>;

/**
 * Watches what waits in a socket for the system to take it. A socket does not report when some of it was taken: only
 * looking shows it.
 */
class StuckSocket {
  readonly #socket: Waits;
  #waits: { readonly sinceMs: number; readonly takenBytes: number } | undefined;

  constructor(socket: Waits) {
    this.#socket = socket;
  }

  /** Whether something waits at this moment. */
  get anyWaits(): boolean {
    return this.#socket.writableLength > 0;
  }

  /** Looks, and tells for how long, in ms, the system has been seen to take nothing though something waited. */
  stuckMs(nowMs: number): number {
    if (!this.anyWaits) {
      this.#waits = undefined;
      return 0;
    }
    const takenBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    if (this.#waits?.takenBytes !== takenBytes) this.#waits = { sinceMs: nowMs, takenBytes };
    return nowMs - this.#waits.sinceMs;
  }

  /** Whether something waited at the last look, so that another is needed. */
  get watches(): boolean {
    return this.#waits !== undefined;
  }
}

/** Tracks how long the connection's window, which its requests share, has held back what they have to send. */
class ShutWindow {
  #sinceMs: number | undefined;

  /** Says whether something waits and the window is shut. */
  seen(isShut: boolean, nowMs: number): void {
    if (!isShut) this.#sinceMs = undefined;
    else this.#sinceMs ??= nowMs;
  }

  /** Whether it was shut when last seen, and must be looked at again. */
  get watches(): boolean {
    return this.#sinceMs !== undefined;
  }

  /** For how long it has been seen shut, in ms. */
  shutMs(nowMs: number): number {
    return this.#sinceMs === undefined ? 0 : nowMs - this.#sinceMs;
  }
}

/**
 * Counts the streams that this side resets on one connection. Servers end a connection whose streams are reset too often
 * (rapid reset, CVE-2023-44487), and with it the requests of everybody who shares it: Netty, and so grpc-java, at the
 * 201st in 30 s, which is the least that is known.
 */
class SentResets {
  #count = 0;
  #windowEndsAtMs = Number.NEGATIVE_INFINITY;

  /** One is sent. @returns whether the connection may carry no further requests. */
  sent(nowMs: number): boolean {
    if (nowMs >= this.#windowEndsAtMs) {
      this.#windowEndsAtMs = nowMs + RESETS_WINDOW_MS;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count >= MAX_RESETS;
  }
}
