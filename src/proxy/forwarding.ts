import { type ProxyErrorCode, SidecarError } from '../errors.ts';
import type { BearerSource } from '../token/bearer-source.ts';
import { TokenUnavailable } from '../token/token-unavailable.ts';
import type { ActiveRoute, ProxyContext } from './context.ts';
import type { Destination } from './destination.ts';
import type { Exchange, RequestService } from './exchange.ts';
import { hasField, offeredProtocols, upstreamFields } from './header-rules.ts';
import type { BodyFraming } from './http1/body-framing.ts';
import type { ResponseHead } from './http1/response-head.ts';
import { serializeRequestHead } from './http1/serialize.ts';
import type { ReplayResult } from './metrics.ts';
import { asProxyError, logFailure } from './proxy-error.ts';
import { RequestBody } from './request-body.ts';
import { runTunnel, switchingHead } from './tunnel.ts';
import type { UpstreamConnection } from './upstream-connection.ts';
import type { UpstreamUser } from './upstream-user.ts';

/** RFC 9110 §9.2.2. */
const IDEMPOTENT: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'TRACE']);

/** Methods without a body by nature; of any other, a missing content-length says nothing (RFC 9110 §8.6). */
const BODILESS: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** An admitted request on its way: given its token, sent, perhaps sent once more, its answer passed on. */
export class Forwarding implements RequestService, UpstreamUser {
  readonly body: RequestBody | undefined;
  readonly #exchange: Exchange;
  readonly #context: ProxyContext;
  readonly #route: ActiveRoute;
  readonly #target: string;
  readonly #keepsOwnAuthorization: boolean;
  /** Protocols that the app offers to switch to. */
  readonly #upgrade: string | undefined;
  #authorization: string | undefined;
  #upstream: UpstreamConnection | undefined;
  #sentAgain = false;
  #replay: 'none' | 'unanswered' | 'counted' = 'none';
  /** A 401 is held back while another token is asked for. */
  #asking = false;
  /** Why the connection of the held 401 is gone. */
  #lost: SidecarError<ProxyErrorCode> | undefined;

  constructor(exchange: Exchange, context: ProxyContext, { route, target }: Destination) {
    this.#exchange = exchange;
    this.#context = context;
    this.#route = route;
    this.#target = target;
    const { head, requestWhole } = exchange;
    this.#keepsOwnAuthorization =
      route.config.existingAuthorization === 'keep' && hasField(head.fields, 'authorization');
    this.#upgrade = requestWhole && head.minorVersion === 1 ? offeredProtocols(head) : undefined;
    this.body = requestWhole ? undefined : this.#bodyToCome();
  }

  begin(): void {
    // The token is in hand for all but the first requests; those who have it need not wait for a microtask.
    const bearer = this.#bearer;
    const held = bearer?.current();
    if (bearer !== undefined && held === undefined) {
      void this.#sendWhenObtained(bearer);
      return;
    }
    this.#authorization = held;
    if (this.#acquire()) this.#write(this.#exchange.startedAtMs);
  }

  /** Sends what was written of the request; an app that is faster than the upstream has to wait. */
  flushRequest(): void {
    const flushed = this.#upstream?.writer.flush() ?? true;
    if (!flushed) this.#holdApp();
  }

  /** The app takes more of the answer. */
  appReady(): void {
    if (this.#asking) return;
    this.#upstream?.touch();
    this.#upstream?.socket.resume();
  }

  /** Lets go of everything: the exchange has ended otherwise. */
  release(): void {
    this.#upstream?.abandon();
    this.#upstream = undefined;
    this.#countReplay('failure');
  }

  connected(): void {
    try {
      this.#write(this.#nowMs());
    } catch (error) {
      this.#fail(asProxyError(error));
      return;
    }
    this.#exchange.connection.proceed();
    this.flushRequest();
  }

  informed(head: ResponseHead): void {
    this.#exchange.inform(head);
  }

  answered(head: ResponseHead, framing: BodyFraming): void {
    const refused = head.status === 401 ? this.#authorization : undefined;
    if (refused !== undefined) this.#route.metrics.upstreamUnauthorized();
    if (refused !== undefined && this.#mayReplay()) {
      void this.#replayOrDeliver(refused, head, framing);
      return;
    }
    this.#countReplay(head.status === 401 ? 'failure' : 'success');
    this.#deliver(head, framing);
  }

  switched(head: ResponseHead): void {
    const upstream = this.#upstream;
    if (this.#upgrade === undefined || upstream === undefined) {
      throw new SidecarError(
        'upstream_protocol_error',
        'the upstream switched protocols without being asked',
      );
    }
    this.#countReplay('success');
    this.#upstream = undefined;
    this.#exchange.becomeTunnel(101);
    const { idleMs } = this.#route.config.timeouts;
    runTunnel(this.#exchange.connection, upstream, switchingHead(head), {
      clock: this.#context.clock,
      idleMs,
    });
  }

  answerData(slice: Buffer): void {
    this.#exchange.answerData(slice);
  }

  answerEnded(trailers: readonly string[]): void {
    this.#upstream = undefined;
    this.#exchange.endAnswer(trailers);
  }

  flushAnswer(): void {
    if (!this.#exchange.flushAnswer()) this.#upstream?.socket.pause();
  }

  upstreamReady(): void {
    if (!this.#asking) this.#exchange.connection.proceed();
  }

  /** Nothing has moved: an upstream that takes no more of the body is told on, the rest is cut. */
  stalled(): void {
    const error = new SidecarError(
      'upstream_timeout',
      `nothing moved for ${this.#route.config.timeouts.idleMs} ms`,
    );
    const appIsSlow = this.#upstream?.socket.writableLength === 0 && !this.#exchange.awaitsContinue;
    if (!this.#exchange.begun && !appIsSlow) {
      this.#fail(error);
      return;
    }
    logFailure(this.#context.log, this.#route.config.name, error);
    this.#exchange.cut();
  }

  upstreamFailed(error: SidecarError<ProxyErrorCode>, unanswered: boolean): void {
    this.#upstream = undefined;
    this.body?.detach();
    if (this.#asking) {
      this.#lost = error;
    } else if (unanswered && !this.#sentAgain && this.#isSafeToRepeat()) {
      this.#sentAgain = true;
      // Its neighbours were most likely closed by the same hand.
      this.#route.pool.discardIdle();
      this.#sendAgain();
    } else {
      this.#fail(error);
    }
  }

  /**
   * Where the token to inject comes from, if one is to be. TRACE answers with the request it got, so credentials must
   * not go out with it (RFC 9110 §9.3.8): the app would read the token.
   */
  get #bearer(): BearerSource | undefined {
    if (this.#keepsOwnAuthorization || this.#exchange.head.method === 'TRACE') return undefined;
    return this.#route.bearer;
  }

  async #sendWhenObtained(bearer: BearerSource): Promise<void> {
    this.#holdApp();
    try {
      this.#authorization = await bearer.obtain();
    } catch (error) {
      const passes = this.#route.config.whenTokenUnavailable === 'passthrough';
      if (!(passes && error instanceof TokenUnavailable)) {
        this.#fail(asProxyError(error));
        return;
      }
    }
    if (!this.#exchange.over) this.#sendAgain();
  }

  /** Passes the 401 on as it came, unless there is another token. */
  async #replayOrDeliver(refused: string, head: ResponseHead, framing: BodyFraming): Promise<void> {
    this.#asking = true;
    this.#upstream?.hold();
    this.#holdApp();
    try {
      const other = await this.#bearer?.replace(refused);
      this.#asking = false;
      if (this.#exchange.over) return;
      if (other !== undefined && other !== refused) this.#replayWith(other);
      else this.#deliverHeld(head, framing);
    } catch (error) {
      this.#fail(asProxyError(error));
    }
  }

  #replayWith(authorization: string): void {
    this.#authorization = authorization;
    this.#replay = 'unanswered';
    this.#sentAgain = false;
    this.body?.detach();
    this.#upstream?.discardAnswer();
    this.#sendAgain();
  }

  #deliverHeld(head: ResponseHead, framing: BodyFraming): void {
    if (this.#lost !== undefined) {
      this.#fail(this.#lost);
      return;
    }
    this.#deliver(head, framing);
    this.#upstream?.touch();
    this.#upstream?.proceed();
    this.#exchange.connection.proceed();
  }

  #sendAgain(): void {
    let connected: boolean;
    try {
      connected = this.#acquire();
    } catch (error) {
      this.#fail(asProxyError(error));
      return;
    }
    if (connected) this.connected();
  }

  /** Whether there is a connection to write to at once; if not, `connected` is called when there is. */
  #acquire(): boolean {
    const { pool } = this.#route;
    const upstream = this.#sentAgain ? pool.acquireNew(this) : pool.acquire(this);
    this.#upstream = upstream;
    if (!upstream.ready) this.#holdApp();
    return upstream.ready;
  }

  #write(nowMs: number): void {
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    const { head } = this.#exchange;
    const { config } = this.#route;
    upstream.begin(head.method);
    const fields = upstreamFields(head, {
      authority: config.upstream.authority,
      authorization: this.#authorization,
      keepClientAuthorization: this.#keepsOwnAuthorization,
      instanceId: this.#context.instanceId,
      chunked: head.chunked,
      upgrade: this.#upgrade,
      sayEmpty: this.body === undefined && !BODILESS.has(head.method),
    });
    upstream.writer.text(serializeRequestHead(head.method, this.#target, fields));
    if (this.body === undefined) upstream.requestSent(nowMs);
    else this.body.sendTo(upstream, nowMs);
  }

  #deliver(head: ResponseHead, framing: BodyFraming): void {
    this.body?.settle();
    this.#exchange.beginAnswer(head, framing);
  }

  #mayReplay(): boolean {
    return this.#replay === 'none' && this.#route.config.retryOn401 && this.#isWhole();
  }

  #isSafeToRepeat(): boolean {
    const { method, fields } = this.#exchange.head;
    return this.#isWhole() && (IDEMPOTENT.has(method) || hasField(fields, 'idempotency-key'));
  }

  #isWhole(): boolean {
    return this.body?.whole ?? true;
  }

  #bodyToCome(): RequestBody {
    const { chunked, contentLength = 0 } = this.#exchange.head;
    const { replayBytes, requestBodyBytes } = this.#context.limits;
    // A body that will not fit is not even begun to be kept.
    const fits = contentLength <= replayBytes;
    return new RequestBody({ chunked, replayBytes: fits ? replayBytes : 0, maxBytes: requestBodyBytes });
  }

  /** A request that has come whole is not held up, so that an app that leaves is seen to leave. */
  #holdApp(): void {
    if (!this.#exchange.requestWhole) this.#exchange.connection.hold();
  }

  #countReplay(result: ReplayResult): void {
    if (this.#replay !== 'unanswered') return;
    this.#replay = 'counted';
    this.#route.metrics.replayed(result);
  }

  #fail(error: SidecarError<ProxyErrorCode>): void {
    if (this.#exchange.over) return;
    logFailure(this.#context.log, this.#route.config.name, error);
    this.#exchange.fail(error);
  }

  #nowMs(): number {
    return this.#context.clock.monotonicMs();
  }
}
