import type { Socket } from 'node:net';
import type { RouteConfig } from '../../../config/config.ts';
import type { ProxyErrorCode, SidecarError } from '../../../platform/errors.ts';
import { type Clock, hasPassed, type Instant, later } from '../../../platform/time/clock.ts';
import type { Fields } from '../../http/fields.ts';
import { ClientConnection, type ClientHandler } from '../../http2/client-connection.ts';
import type { StreamError } from '../../http2/connection-output.ts';
import { ErrorCode } from '../../http2/errors.ts';
import type { GoawayFrame } from '../../http2/frames.ts';
import type { ResponseSection } from '../../http2/messages.ts';
import { DenseSet } from '../../io/collections.ts';
import { afterPoll, Deadline } from '../../io/deadline.ts';
import { FailedWrite } from '../../io/sockets.ts';
import { asProxyError } from '../../proxy-error.ts';
import { HTTP2_ANSWER_LIMITS, IDLE_MS } from '../connection-budget.ts';
import type { Dialling } from '../dialer.ts';
import type { UpstreamFailures } from '../failures.ts';
import { type CarriedStream, UpstreamOutlet, type WireStream } from './connection-writer.ts';
import { Liveness, PING_MS, QUIET_MS, STALL_MS } from './liveness.ts';

type ConnectionState =
  | { readonly kind: 'open' }
  /** Is the upstream there? `needDrain`: PING waited for earlier writes to leave. */
  | { readonly kind: 'examined'; readonly untilMs: number; readonly needDrain: boolean }
  /** Finishes its present requests. */
  | { readonly kind: 'ending' }
  /** All is written; the last of it is leaving. */
  | { readonly kind: 'closing'; readonly untilMs: number }
  | { readonly kind: 'gone' };

const OPEN: ConnectionState = { kind: 'open' };

/** More would wait too long for each other's bytes. */
export const MAX_STREAMS = 128;

/** How long the last bytes may take to leave. */
const LINGER_MS = 1_000;

interface Http2ConnectionOptions {
  readonly route: RouteConfig;
  readonly clock: Clock;
  readonly failures: UpstreamFailures;
  /** No request begins later. */
  readonly maxAgeMs: number;
  /** Assumed until the upstream says how many it allows. */
  readonly assumedStreams: number;
  /** Whether requests avoid it while slow readers fill it. */
  mayStandAside(): boolean;
  /** A waiting request may now be sent, on it or on another. */
  onFree(connection: Http2Connection): void;
  /** Called in the turn in which it becomes unfit for further requests. */
  onGone(connection: Http2Connection): void;
  /** Called when it has ended, or is about to. */
  onClosed(): void;
  onAllowed(streams: number): void;
}

/** Its content has no meaning: any answer shows that the upstream is there. */
const PING = Buffer.from('sidecar?');

export class Http2Connection implements ClientHandler<CarriedStream> {
  readonly socket: Socket;
  readonly outlet: UpstreamOutlet;
  readonly #streams = new DenseSet<CarriedStream>();
  readonly #options: Http2ConnectionOptions;
  readonly #codec: ClientConnection<CarriedStream>;
  readonly #failed: FailedWrite;
  readonly #liveness: Liveness;
  readonly #deadline: Deadline;
  readonly #retiresAt: Instant;
  readonly #pingMs: number;
  #state: ConnectionState = OPEN;
  #heardAny = false;
  /** What `onAllowed` was told last. */
  #allowed: number | undefined;
  /** Streams that the present read has brought something for. */
  #touched: CarriedStream[] = [];
  #refuses = false;
  #answeredAny = false;
  #goaway: ErrorCode | undefined;
  #idleUntilMs = Number.POSITIVE_INFINITY;
  #lookAtMs = Number.POSITIVE_INFINITY;

  constructor(dialling: Dialling, options: Http2ConnectionOptions) {
    this.#options = options;
    const { clock, maxAgeMs, failures, route } = options;
    this.#pingMs = Math.min(PING_MS, route.timeouts.connectMs);
    this.#codec = new ClientConnection(HTTP2_ANSWER_LIMITS, this);
    const socket = dialling.handTo((chunk) => this.#onBytes(chunk));
    this.socket = socket;
    this.#failed = new FailedWrite(socket);
    this.outlet = new UpstreamOutlet(
      socket,
      this.#failed,
      this.#codec,
      () => {
        const lookAtMs = this.#state.kind === 'gone' ? undefined : this.#liveness.watch();
        if (lookAtMs !== undefined) this.due(lookAtMs);
      },
      () => {
        // Here or, if this one is ending, on a new one.
        if (this.#state.kind === 'ending') options.onFree(this);
        else this.#offer();
      },
      () => {
        if (this.#liveness.reset()) this.drain();
      },
    );
    const now = clock.now();
    this.#liveness = new Liveness(socket, this.outlet, clock, now);
    this.#retiresAt = later(now, maxAgeMs);
    this.#deadline = new Deadline(clock, () => this.#look());
    socket.on('end', () => {
      // If a write had failed, the error follows.
      if (socket.errored === null) this.#fail(this.#ended(), true);
    });
    socket.on('drain', () => {
      this.#guarded(() => {
        // Waiting requests get room before those on the connection.
        this.#offer();
        this.outlet.serveWaiting();
      });
    });
    socket.on('error', (error) => this.#fail(failures.of(error, 'busy'), true));
    socket.on('close', () => {
      this.#deadline.dispose();
      this.#fail(this.#ended(), true);
    });
    this.#codec.start();
    this.#becomeIdle();
    this.outlet.flushSoon();
  }

  get free(): number {
    return this.#state.kind === 'open' && this.outlet.takesMore ? this.#room : 0;
  }

  /** Once the upstream has answered PING and the socket takes more. */
  get freeSoon(): number {
    const state = this.#state;
    const comes =
      state.kind === 'examined' ? !state.needDrain : state.kind === 'open' && !this.outlet.takesMore;
    return comes && this.#liveness.stuckMs(this.nowMs()) < STALL_MS ? this.#room : 0;
  }

  get idle(): boolean {
    return this.#streams.size === 0;
  }

  /** Whether a request was refused since the last answer. */
  get refuses(): boolean {
    return this.#refuses;
  }

  /** If the upstream then closes it, most likely it has not seen the last request. */
  get reused(): boolean {
    return this.#answeredAny;
  }

  /** Checks a quiet connection first; then `onFree` is called. */
  prepare(maxIdleMs: number, now: Instant): void {
    if (this.#state.kind !== 'open') return;
    if (hasPassed(this.#retiresAt, now)) this.drain();
    else if (this.#liveness.quietMs(now) >= QUIET_MS) this.#ping(now);
    else if (this.#liveness.quietMs(now) >= maxIdleMs) this.#poll();
  }

  lend(stream: CarriedStream): void {
    this.#streams.add(stream);
    this.#idleUntilMs = Number.POSITIVE_INFINITY;
  }

  release(stream: CarriedStream): void {
    this.outlet.waitNoMore(stream);
    if (!this.#streams.delete(stream)) return;
    if (this.#streams.size === 0) {
      if (this.#state.kind === 'ending') this.#close(ErrorCode.NO_ERROR);
      else this.#becomeIdle();
    }
    this.#offer();
  }

  /** Begins no further request. */
  drain(): void {
    if (this.#state.kind !== 'open' && this.#state.kind !== 'examined') return;
    this.#state = { kind: 'ending' };
    this.#options.onGone(this);
    if (this.#streams.size === 0) this.#close(ErrorCode.NO_ERROR);
  }

  /** Does not tell the connection's users. */
  abandon(): void {
    if (this.#state.kind === 'gone') return;
    const { kind } = this.#state;
    this.#state = { kind: 'gone' };
    this.outlet.close();
    this.socket.destroy();
    if (kind !== 'ending' && kind !== 'closing') this.#options.onGone(this);
    if (kind !== 'closing') this.#options.onClosed();
  }

  /** At that time `tooLate` is called on streams whose `dueAtMs` has come. */
  due(atMs: number): void {
    if (atMs >= this.#lookAtMs) return;
    this.#lookAtMs = atMs;
    this.#deadline.set(atMs);
  }

  nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  answer(
    wire: WireStream,
    answer: ResponseSection,
    endStream: boolean,
    neverIndexed: readonly string[],
  ): void {
    this.#answeredAny = true;
    this.#refuses = false;
    const { context } = wire;
    if (context === undefined) return;
    this.#touched.push(context);
    context.answerCame(answer, endStream, neverIndexed);
  }

  data(wire: WireStream, data: Buffer, endStream: boolean): void {
    const { context } = wire;
    if (context === undefined) return;
    this.#touched.push(context);
    context.dataCame(data, endStream);
  }

  trailers(wire: WireStream, fields: Fields): void {
    wire.context?.trailersCame(fields);
  }

  broken(wire: WireStream, how: StreamError): void {
    if (how.kind === 'reset' && how.code === ErrorCode.REFUSED_STREAM) {
      this.#refuses = true;
      // This decides where a refused request goes.
      this.#options.onAllowed(this.#codec.peer.maxConcurrentStreams);
    } else if (how.kind === 'reset' && how.code === ErrorCode.ENHANCE_YOUR_CALM) {
      // Too much was asked on the connection (RFC 9113 §7).
      this.drain();
    }
    wire.context?.brokenOff(how);
  }

  writable(): void {
    const opens = this.#liveness.windowOpens();
    this.outlet.serveWaiting();
    if (opens) this.#offer();
  }

  goaway({ code }: GoawayFrame): void {
    this.#goaway = code;
    this.drain();
  }

  mayOpen(): void {
    this.#offer();
  }

  #offer(): void {
    if (this.#state.kind !== 'open') return;
    if (hasPassed(this.#retiresAt, this.#options.clock.now())) this.drain();
    else this.#options.onFree(this);
  }

  get #room(): number {
    if (!this.#codec.mayOpen || this.#failed.happened || this.#liveness.windowStuck) return 0;
    // It would wait for apps that have nothing to do with it.
    if (this.outlet.awaitsReaders && this.#options.mayStandAside()) return 0;
    const { settingsCame, peer } = this.#codec;
    const allowed = settingsCame ? peer.maxConcurrentStreams : this.#options.assumedStreams;
    return Math.max(0, Math.min(allowed, MAX_STREAMS) - this.#streams.size);
  }

  #onBytes(chunk: Buffer): void {
    if (this.#state.kind === 'gone' || this.#state.kind === 'closing') return;
    this.#guarded(() => this.#read(chunk));
  }

  /** A failure inside costs only this connection. */
  #guarded(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#fail(asProxyError(error), false);
    }
  }

  #read(chunk: Buffer): void {
    const now = this.#options.clock.now();
    this.#liveness.heard(now);
    const fault = this.#codec.receive(chunk, now.monotonicMs);
    if (fault !== undefined) {
      this.#close(undefined);
      this.#tellAll(this.#options.failures.http2(fault.reason, this.#heardAny), false);
      return;
    }
    this.#heardAny = true;
    this.#tellAllowed();
    this.#pieceEnded(now.monotonicMs);
    if (this.#state.kind === 'examined') {
      this.#state = OPEN;
      this.#offer();
    }
    this.outlet.flushFramesSoon();
  }

  #pieceEnded(nowMs: number): void {
    const touched = this.#touched;
    if (touched.length === 0) return;
    this.#touched = [];
    for (const stream of touched) stream.pieceEnded(nowMs);
  }

  #tellAllowed(): void {
    const { maxConcurrentStreams } = this.#codec.peer;
    if (!this.#codec.settingsCame || maxConcurrentStreams === this.#allowed) return;
    this.#allowed = maxConcurrentStreams;
    this.#options.onAllowed(maxConcurrentStreams);
    this.#offer();
  }

  #ping(now: Instant): void {
    const untilMs = now.monotonicMs + this.#pingMs;
    this.#state = { kind: 'examined', untilMs, needDrain: false };
    this.#codec.ping(PING);
    this.outlet.flushSoon();
    this.due(untilMs);
  }

  /** PING's time begins once it has left the socket. */
  #askedBehind(nowMs: number): boolean {
    const waits = this.#liveness.anyWaits;
    if (this.#state.kind !== 'examined' || !(waits || this.#state.needDrain)) return false;
    this.#state = { kind: 'examined', untilMs: nowMs + this.#pingMs, needDrain: waits };
    if (waits) this.#options.onFree(this);
    return true;
  }

  #lookWhetherStuck(nowMs: number): void {
    const stuck = this.#liveness.look(nowMs);
    const { kind } = this.#state;
    if (kind !== 'open' && kind !== 'examined') return;
    if (stuck === 'stuck for good') this.drain();
    else if (stuck === 'stuck') this.#options.onFree(this);
  }

  /** Unread bytes show whether the upstream has closed. */
  #poll(): void {
    const examined: ConnectionState = {
      kind: 'examined',
      untilMs: Number.POSITIVE_INFINITY,
      needDrain: false,
    };
    this.#state = examined;
    afterPoll(() => {
      if (this.#state !== examined) return;
      this.#state = OPEN;
      this.#offer();
    });
  }

  #becomeIdle(): void {
    this.#idleUntilMs = this.nowMs() + IDLE_MS;
    this.due(this.#idleUntilMs);
  }

  #ended(): SidecarError<ProxyErrorCode> {
    const { failures } = this.#options;
    return this.#goaway === undefined ? failures.closed() : failures.goneAway(this.#goaway);
  }

  /** @param byPeer false if a bound or rule of the sidecar ended it. */
  #fail(error: SidecarError<ProxyErrorCode>, byPeer: boolean): void {
    if (this.#state.kind === 'gone') return;
    this.abandon();
    this.#tellAll(error, byPeer);
  }

  #tellAll(error: SidecarError<ProxyErrorCode>, byPeer: boolean): void {
    const streams = [...this.#streams];
    this.#streams.clear();
    this.outlet.nobodyWaits();
    for (const stream of streams) stream.connectionFailed(error, byPeer);
  }

  /** @param code of GOAWAY, unless it has been written. */
  #close(code: ErrorCode | undefined): void {
    if (this.#state.kind === 'gone' || this.#state.kind === 'closing') return;
    const ended = this.#state.kind === 'ending';
    const untilMs = this.nowMs() + LINGER_MS;
    this.#state = { kind: 'closing', untilMs };
    if (code !== undefined) this.#codec.goaway(code);
    this.outlet.flush();
    this.socket.destroySoon();
    this.due(untilMs);
    if (!ended) this.#options.onGone(this);
    this.#options.onClosed();
  }

  #look(): void {
    this.#lookAtMs = Number.POSITIVE_INFINITY;
    const nowMs = this.nowMs();
    if (this.#state.kind === 'gone') return;
    if (this.#state.kind === 'closing') {
      // Earlier deadlines no longer apply.
      if (this.#state.untilMs > nowMs) this.due(this.#state.untilMs);
      else this.abandon();
      return;
    }
    if (this.#state.kind === 'examined' && this.#state.untilMs <= nowMs && !this.#askedBehind(nowMs)) {
      this.#fail(this.#options.failures.silent(), true);
      return;
    }
    this.#lookWhetherStuck(nowMs);
    // Requests do not check a full connection's age, and it would prevent a new one.
    if (hasPassed(this.#retiresAt, this.#options.clock.now())) this.drain();
    if (this.#idleUntilMs <= nowMs) {
      this.#close(ErrorCode.NO_ERROR);
      return;
    }
    for (const stream of this.#streams) if (stream.dueAtMs <= nowMs) stream.tooLate();
    for (const stream of this.#streams) this.due(stream.dueAtMs);
    if (this.#state.kind === 'examined') this.due(this.#state.untilMs);
    if (this.#liveness.watches) this.due(nowMs + STALL_MS);
    if (this.#state.kind === 'open') this.due(this.#retiresAt.monotonicMs);
    this.due(this.#idleUntilMs);
  }
}
