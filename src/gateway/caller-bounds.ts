import type { CallerLimits } from '../config/config.ts';
import { TokenBucket } from '../platform/limits/token-bucket.ts';
import type { Clock } from '../platform/time/clock.ts';
import { DEFAULT_ABUSE_LIMITS } from '../proxy/http2/abuse.ts';
import { CallerHeldBack } from '../proxy/transaction/authorizer.ts';

/** The longest quiet makes room for another. */
const MAX_CALLERS = 10_000;

/** The default retry hint. */
const SOON_MS = 1000;

/** For one caller over all its connections: as many as over one of HTTP/2. */
const BREAK_OFFS = DEFAULT_ABUSE_LIMITS.reset;

/** Over all its connections. */
class CallerUse {
  inFlight = 0;
  connections = 0;
  /** Only if its entry bounds them. */
  requests: TokenBucket | undefined;
  /** Most callers abort none. */
  breakOffs: TokenBucket | undefined;

  get isResting(): boolean {
    return this.inFlight === 0 && this.connections === 0;
  }
}

export class CallerBounds {
  readonly #clock: Clock;
  readonly #mostCallers: number;
  readonly #mostConnections: () => number;
  readonly #busy = new Map<string, CallerUse>();
  /** The longest quiet first. */
  readonly #resting = new Map<string, CallerUse>();

  /** @param mostConnections of one caller, unless its entry says; called at each new connection. */
  constructor(clock: Clock, mostConnections: () => number, mostCallers = MAX_CALLERS) {
    this.#clock = clock;
    this.#mostConnections = mostConnections;
    this.#mostCallers = mostCallers;
  }

  get size(): number {
    return this.#busy.size + this.#resting.size;
  }

  /**
   * @param onNewConnection whether it is its caller's first on this connection, which counts from here on.
   * @returns the function that ends the request.
   * @throws {CallerHeldBack} having changed only what its rate allows.
   */
  begin(key: string, limits: CallerLimits, onNewConnection: boolean): () => void {
    const caller = this.#find(key);
    const { inFlight } = limits;
    const nowMs = this.#clock.monotonicMs();
    assertRate(caller, limits, nowMs);
    assertStays(caller, nowMs);
    if (caller.inFlight >= inFlight) throw heldBack(`${inFlight} requests in flight`);
    if (onNewConnection) {
      const connections = limits.connections ?? this.#mostConnections();
      if (caller.connections >= connections) throw heldBack(`${connections} connections open`);
    }
    caller.inFlight += 1;
    if (onNewConnection) caller.connections += 1;
    this.#place(key, caller);
    return () => {
      caller.inFlight -= 1;
      this.#place(key, caller);
    };
  }

  brokenOff(key: string): void {
    const caller = this.#busy.get(key);
    if (caller === undefined) return;
    caller.breakOffs ??= new TokenBucket(BREAK_OFFS);
    // Also those that were under way when there was none left: no more than may be in flight.
    caller.breakOffs.charge(this.#clock.monotonicMs());
  }

  connectionClosed(key: string): void {
    const caller = this.#busy.get(key);
    if (caller === undefined) return;
    caller.connections -= 1;
    this.#place(key, caller);
  }

  #find(key: string): CallerUse {
    const known = this.#busy.get(key) ?? this.#resting.get(key);
    if (known !== undefined) return known;
    if (this.size >= this.#mostCallers) {
      const [longestQuiet] = this.#resting.keys();
      if (longestQuiet === undefined) {
        throw new CallerHeldBack(
          'too_many_requests',
          `${this.#mostCallers} callers have something open: no more are told apart`,
          SOON_MS,
        );
      }
      this.#resting.delete(longestQuiet);
    }
    const caller = new CallerUse();
    this.#resting.set(key, caller);
    return caller;
  }

  #place(key: string, caller: CallerUse): void {
    const [from, to] = caller.isResting ? [this.#busy, this.#resting] : [this.#resting, this.#busy];
    from.delete(key);
    if (caller.isResting) to.delete(key);
    to.set(key, caller);
  }
}

/** A changed entry also counts for known callers. */
function assertRate(caller: CallerUse, { requestsPerSecond, burst }: CallerLimits, nowMs: number): void {
  if (requestsPerSecond === undefined) return;
  const rate = { burst, perSecond: requestsPerSecond };
  caller.requests ??= new TokenBucket(rate);
  caller.requests.rate = rate;
  if (caller.requests.take(nowMs)) return;
  const what = `the caller may send ${requestsPerSecond} requests in a second`;
  throw new CallerHeldBack('too_many_requests', what, caller.requests.waitMs(nowMs));
}

/** Each aborted request costs others a part of an upstream connection. */
function assertStays({ breakOffs }: CallerUse, nowMs: number): void {
  const waitMs = breakOffs?.waitMs(nowMs) ?? 0;
  if (waitMs === 0) return;
  const { burst, perSecond } = BREAK_OFFS;
  const what = `the caller has broken off ${burst} requests, and may break off ${perSecond} in a second`;
  throw new CallerHeldBack('too_many_requests', what, waitMs);
}

function heldBack(what: string): CallerHeldBack {
  return new CallerHeldBack('too_many_requests', `the caller has ${what}, and may have no more`, SOON_MS);
}
