import type { OnReadOpts, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { RouteConfig } from '../../../config/config.ts';
import { type ProxyErrorCode, SidecarError, systemCodeOf } from '../../../platform/errors.ts';
import { type Clock, elapsedMs, hasPassed, type Instant, later } from '../../../platform/time/clock.ts';
import { ByteQueue } from '../../io/byte-queue.ts';
import { CoalescingWriter } from '../../io/coalescing-writer.ts';
import { afterPoll, Deadline } from '../../io/deadline.ts';
import { FailedWrite, sharedRead, type TakeBytes } from '../../io/sockets.ts';
import { asProxyError } from '../../proxy-error.ts';
import type { ConnectionOwner, UpstreamUser } from '../../streams/contract.ts';
import { isResponseDue, stallTimeoutMs } from '../../streams/stall-timeouts.ts';
import { sawCloseNotify, type TlsEnd } from '../close-notify.ts';
import { IDLE_MS } from '../connection-budget.ts';
import type { UpstreamFailures } from '../failures.ts';
import { ResponseReader } from './response-reader.ts';
import { type Busy, deliveryOf, type Idle, type ResponseInProgress, type UpstreamState } from './state.ts';

/** How long the rest of an unwanted answer may take. */
const WORTH_READING_MS = 1_000;

interface UpstreamConnectionOptions {
  readonly route: RouteConfig;
  readonly clock: Clock;
  readonly failures: UpstreamFailures;
  /** No request begins later. */
  readonly maxAgeMs: number;
  connect(onread: OnReadOpts): Socket;
  /** Judged by where the connection has led. */
  refusal?(made: Socket): SidecarError<ProxyErrorCode> | undefined;
  /** The upstream refused the HTTP/1.1 offered by ALPN, or seems to have. */
  onRefused?: (() => void) | undefined;
  /** It has been made already, and is the user's at once. */
  readonly stands?: boolean;
  onReusable(connection: UpstreamConnection): void;
  /** Called in the turn in which it becomes unfit for any request. */
  onGone(connection: UpstreamConnection): void;
}

/** Nothing that was offered is spoken (RFC 7301 §3.2). */
const NO_COMMON_VERSION = 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL';

const GIVEN_UP: UpstreamState = { kind: 'given-up' };
const LONG_AGO: Instant = { monotonicMs: Number.NEGATIVE_INFINITY, wallMs: Number.NEGATIVE_INFINITY };

/** Carries one request at a time. */
export class UpstreamConnection extends ResponseReader {
  readonly socket: Socket;
  readonly writer: CoalescingWriter;
  readonly #options: UpstreamConnectionOptions;
  readonly #failures: UpstreamFailures;
  readonly #deadline: Deadline;
  readonly #failed: FailedWrite;
  protected override state: UpstreamState;
  #retiresAt: Instant;
  #owner: ConnectionOwner | undefined;
  #take: TakeBytes = this.onBytes;

  constructor(user: UpstreamUser, options: UpstreamConnectionOptions) {
    super();
    const socket = options.connect(sharedRead((chunk) => this.#take(chunk)));
    this.socket = socket;
    this.#failed = new FailedWrite(socket);
    this.writer = new CoalescingWriter(socket, this.#failed);
    this.#options = options;
    this.#failures = options.failures;
    const now = options.clock.now();
    this.#retiresAt = later(now, options.maxAgeMs);
    this.#deadline = new Deadline(options.clock, () => this.#tooLate());
    if (options.stands === true) {
      this.state = { kind: 'lent', user, idle: undefined };
    } else {
      this.state = { kind: 'connecting', user };
      this.#deadline.set(now.monotonicMs + options.route.timeouts.connectMs);
      socket.once('connect', () => {
        const refusal = options.refusal?.(socket);
        if (refusal !== undefined) socket.destroy(refusal);
        else if (options.route.upstream.protocol === 'http') this.#connected();
        else if (this.state.kind === 'connecting') this.state = { ...this.state, kind: 'securing' };
      });
      socket.once('secureConnect', () => this.#connected());
    }
    socket.on('end', this.#onEnd);
    socket.on('drain', this.#onDrain);
    socket.on('error', (error) => {
      const { user, kind } = { user: undefined, ...this.state };
      if (
        kind === 'securing' &&
        options.onRefused !== undefined &&
        systemCodeOf(error) === NO_COMMON_VERSION
      ) {
        options.onRefused();
        this.abandon();
        user?.onError(this.#failures.takesNoHttp1(error), 'unsent');
      } else {
        this.#onEnded(this.#failures.of(error, kind));
      }
    });
    socket.on('close', () => {
      this.#deadline.dispose();
      if (this.state.kind !== 'given-up') this.#onEnded(this.#closed());
      options.onGone(this);
    });
  }

  get ready(): boolean {
    return this.state.kind === 'lent';
  }

  get onHold(): boolean {
    return this.state.kind === 'held';
  }

  /** Request octets that the system has not taken, and answer octets on hold. */
  get heldBytes(): number {
    const held = this.state.kind === 'held' ? this.state.bytes.length : 0;
    return this.socket.writableLength + held;
  }

  /** Undefined if anybody may use it. */
  get owner(): ConnectionOwner | undefined {
    return this.#owner;
  }

  /** The request that follows authenticates it. */
  tie(): void {
    if (this.state.kind === 'lent') this.tieTo(this.state.user);
  }

  /**
   * Gives an idle connection up if it can carry no request.
   * @param maxIdleMs after this long idle, a turn of the event loop shows whether the upstream has closed it;
   * then `onConnected` is called.
   */
  lend(user: UpstreamUser, maxIdleMs: number, now: Instant): boolean {
    const idle = this.state;
    const { socket } = this;
    const dead = socket.destroyed || socket.readableEnded || socket.errored !== null;
    if (dead || idle.kind !== 'idle' || isSpent(idle, now) || hasPassed(this.#retiresAt, now)) {
      this.abandon();
      return false;
    }
    this.#deadline.clear();
    if (idle.doubtful || elapsedMs(idle.since, now) >= maxIdleMs) {
      const examined: UpstreamState = { kind: 'examined', user, idle };
      this.state = examined;
      afterPoll(() => {
        if (this.state !== examined) return;
        this.state = { kind: 'lent', user, idle };
        user.onConnected();
      });
    } else {
      this.state = { kind: 'lent', user, idle };
    }
    return true;
  }

  giveBack(): void {
    const lent = this.state;
    if (lent.kind !== 'lent') return;
    if (lent.idle === undefined) {
      this.#becomeIdle(IDLE_MS, false);
      return;
    }
    this.state = lent.idle;
    this.#deadline.set(lent.idle.since.monotonicMs + lent.idle.reusableForMs);
    this.#options.onReusable(this);
  }

  begin(method: string): void {
    const lent = this.state;
    if (lent.kind !== 'lent') throw new SidecarError('internal', `a request was begun on a ${lent.kind} one`);
    this.writer.beginMessage();
    this.state = {
      kind: 'busy',
      user: lent.user,
      method,
      reused: lent.idle !== undefined,
      requestComplete: false,
      anyResponse: false,
      interims: undefined,
      answer: undefined,
      gatheredBytes: 0,
    };
  }

  /** The answer is due from now on. */
  requestSent(nowMs: number): void {
    const busy = this.state;
    if (busy.kind !== 'busy') return;
    busy.requestComplete = true;
    this.#deadline.set(nowMs + this.#stallTimeoutMs(busy));
  }

  /** Bytes have moved, or there was room for more. */
  override touch(): void {
    const busy = this.state;
    if (busy.kind !== 'busy' || isResponseDue(busy.requestComplete, busy.answer !== undefined)) return;
    this.#deadline.set(this.#nowMs() + this.#stallTimeoutMs(busy));
  }

  pause(): void {
    const busy = this.state;
    if (busy.kind === 'busy' && busy.answer !== undefined) busy.answer.wasHeld = true;
    this.socket.pause();
  }

  resume(): void {
    if (this.onHold) return;
    this.touch();
    this.socket.resume();
  }

  /** Called during `onResponse`; passes nothing on until `releaseResponse`. */
  holdResponse(): void {
    const busy = this.state;
    if (busy.kind !== 'busy') return;
    // The head of this answer does not count as gathered.
    busy.gatheredBytes = 0;
    this.state = { kind: 'held', busy, bytes: new ByteQueue(), end: undefined };
    if (busy.answer !== undefined) busy.answer.wasHeld = true;
    this.#deadline.clear();
    this.socket.pause();
  }

  releaseResponse(): void {
    const held = this.state;
    if (held.kind !== 'held') return;
    const { busy, bytes, end } = held;
    if (end !== undefined && busy.answer !== undefined) busy.answer.persistent = false;
    this.state = busy;
    this.touch();
    this.readHeld(bytes);
    if (end !== undefined) this.#onEnded(end);
    this.resume();
  }

  /** Reads the rest of the held answer if its end is near, otherwise cuts the connection. */
  discardResponse(): void {
    const held = this.state;
    const answer = held.kind === 'held' && held.busy.requestComplete ? held.busy.answer : undefined;
    if (held.kind !== 'held' || held.end !== undefined || !answer?.persistent) {
      this.abandon();
      return;
    }
    this.state = { kind: 'discarding', answer, bytes: 0 };
    this.#deadline.set(this.#nowMs() + WORTH_READING_MS);
    this.readHeld(held.bytes);
    this.socket.resume();
  }

  override abandon(): void {
    if (this.state.kind === 'given-up') return;
    this.state = GIVEN_UP;
    this.writer.clear();
    this.socket.destroy();
    this.#options.onGone(this);
  }

  /** Begins no further request. */
  drain(): void {
    this.#retiresAt = LONG_AGO;
  }

  /** @returns octets that came with the head. */
  takeOver(take: TakeBytes): Buffer | undefined {
    const { socket } = this;
    const bytes = this.state.kind === 'switching' ? this.state.bytes : undefined;
    this.state = { kind: 'taken-over' };
    this.#take = take;
    this.#deadline.dispose();
    socket.off('end', this.#onEnd);
    socket.off('drain', this.#onDrain);
    return bytes;
  }

  /** A listener instead would keep the user alive as long as the socket. */
  #connected(): void {
    const made = this.state;
    if (made.kind !== 'connecting' && made.kind !== 'securing') return;
    const { user } = made;
    this.state = { kind: 'lent', user, idle: undefined };
    this.#deadline.clear();
    user.onConnected();
  }

  readonly #onDrain = (): void => {
    this.touch();
    if (this.state.kind === 'busy') this.state.user.onDrain();
  };

  readonly #onEnd = (): void => {
    // A write had failed: the error follows.
    if (this.socket.errored !== null) return;
    this.#onEnded(sawCloseNotify(this.socket) ? 'said' : 'cut');
  };

  #onEnded(end: TlsEnd): void {
    const state = this.state;
    switch (state.kind) {
      case 'held':
        state.end ??= end;
        break;
      case 'securing':
        // Node reports this end by an error of its own.
        if (typeof end === 'object') this.fail(end, true);
        break;
      case 'busy':
      case 'discarding':
        // Go accepts HTTP/1.1 by ALPN even where it speaks only HTTP/2.
        if (state.kind === 'busy' && !state.reused && !state.anyResponse && this.#choseNothing) {
          this.#options.onRefused?.();
        }
        this.#endStream(state.answer, end);
        break;
      case 'taken-over':
      case 'given-up':
        break;
      default:
        this.fail(typeof end === 'object' ? end : this.#closed(), true);
    }
  }

  #endStream(answer: ResponseInProgress | undefined, end: TlsEnd): void {
    if (typeof end === 'object' || answer === undefined) {
      this.fail(typeof end === 'object' ? end : this.#closed(), true);
    } else if (end === 'cut') {
      this.fail(this.#failures.cut(), true);
    } else {
      try {
        answer.persistent = false;
        answer.body.end();
        this.endResponse(answer);
      } catch (error) {
        this.fail(asProxyError(error), false);
      }
    }
  }

  /** Without an owner, a challenge alone does not tie the connection. */
  protected override tieTo({ owner }: UpstreamUser): void {
    if (owner !== undefined) this.#owner = owner;
  }

  protected override endResponse(answer: ResponseInProgress): void {
    const state = this.state;
    const requestComplete = state.kind !== 'busy' || state.requestComplete;
    if (answer.persistent && requestComplete && answer.reusableForMs > 0) {
      this.#becomeIdle(answer.reusableForMs, answer.wasHeld);
    } else {
      this.abandon();
    }
    // Last: the user may begin the next request on this connection.
    if (state.kind === 'busy') state.user.onEnd(answer.body.trailers);
  }

  #becomeIdle(reusableForMs: number, doubtful: boolean): void {
    const now = this.#options.clock.now();
    if (hasPassed(this.#retiresAt, now)) {
      this.abandon();
      return;
    }
    this.state = { kind: 'idle', since: now, reusableForMs, doubtful };
    this.#deadline.set(now.monotonicMs + reusableForMs);
    // An app that was too slow for this answer must not hold up the next.
    this.socket.resume();
    this.#options.onReusable(this);
  }

  protected override fail(error: SidecarError<ProxyErrorCode>, byPeer: boolean): void {
    const state = this.state;
    const delivery = deliveryOf(state, byPeer, this.writer.anyLeft);
    this.abandon();
    if ('user' in state) state.user.onError(error, delivery);
  }

  protected override failUnasked(): void {
    this.fail(this.#failures.unasked(), true);
  }

  protected override get brokenUnsent(): boolean {
    return this.#failed.happened && !this.writer.anyLeft;
  }

  #closed(): SidecarError<ProxyErrorCode> {
    return this.#failures.closed(this.#choseNothing);
  }

  /** The upstream was offered HTTP/1.1 by ALPN, and neither chose nor refused it. */
  get #choseNothing(): boolean {
    const { alpnProtocol } = this.socket as Partial<TLSSocket>;
    return this.#options.onRefused !== undefined && alpnProtocol === false;
  }

  #tooLate(): void {
    const state = this.state;
    const { connectMs } = this.#options.route.timeouts;
    switch (state.kind) {
      case 'connecting':
      case 'securing':
        this.fail(this.#failures.tooLate('connection', connectMs), false);
        break;
      case 'busy':
        if (isResponseDue(state.requestComplete, state.answer !== undefined)) {
          this.fail(this.#failures.tooLate('answer', this.#stallTimeoutMs(state)), false);
        } else {
          state.user.onStalled();
        }
        break;
      default:
        this.abandon();
    }
  }

  #stallTimeoutMs({ requestComplete, answer }: Busy): number {
    return stallTimeoutMs(this.#options.route.timeouts, requestComplete, answer !== undefined);
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}

/** Whether the upstream may have closed it by now. */
function isSpent({ since, reusableForMs }: Idle, now: Instant): boolean {
  return elapsedMs(since, now) >= reusableForMs;
}
