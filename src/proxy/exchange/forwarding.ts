import { type ProxyErrorCode, SidecarError } from '../../errors.ts';
import type { BearerSource } from '../../token/bearer-source.ts';
import { TokenUnavailable } from '../../token/token-unavailable.ts';
import { hasField } from '../http/fields.ts';
import type { Protocol } from '../http/protocol.ts';
import type { ReplayResult } from '../observer.ts';
import { asProxyError, logFailure } from '../proxy-error.ts';
import type { ActiveRoute } from '../routing/active-route.ts';
import type { Destination } from '../routing/destination.ts';
import type { AnswerBody, AnswerHead } from '../streams/message.ts';
import { UpstreamReset } from '../streams/upstream-reset.ts';
import type {
  OutgoingRequest,
  RequestFate,
  UpstreamStream,
  UpstreamUser,
} from '../streams/upstream-stream.ts';
import type { ExchangeContext } from './context.ts';
import { FRESH_FOR_REPEATABLE_MS, FRESH_MS, isRepeatable } from './repetition.ts';
import { type RequestBody, requestBodyOf } from './request-body.ts';
import type { RequestService, ServedExchange } from './request-service.ts';
import { grpcHeadVerdict, grpcTrailersVerdict, statusVerdict, type TokenVerdict } from './token-verdict.ts';

/** An admitted request on its way: given its token, sent, perhaps sent once more, its answer passed on. */
export class Forwarding implements RequestService, UpstreamUser {
  readonly body: RequestBody | undefined;
  sentBy: Protocol | undefined;
  readonly #exchange: ServedExchange;
  readonly #context: ExchangeContext;
  readonly #route: ActiveRoute;
  readonly #target: string;
  readonly #keepsOwnAuthorization: boolean;
  /** Protocols that the app offers to switch to. */
  readonly #upgrade: string | undefined;
  /** What was sent last. */
  #authorization: string | undefined;
  /** No token was to be had, and the route lets the request go without. */
  #goesWithout = false;
  #upstream: UpstreamStream | undefined;
  #sentAgain = false;
  /** Whether it is sent again because the upstream refused it, on a connection that goes on. */
  #wasRefused = false;
  #replay: 'none' | 'unanswered' | 'counted' = 'none';
  /** Whether it is for the trailers of the answer to say what became of the token. */
  #awaitsTrailers = false;

  constructor(exchange: ServedExchange, context: ExchangeContext, { route, target }: Destination) {
    this.#exchange = exchange;
    this.#context = context;
    this.#route = route;
    this.#target = target;
    this.#keepsOwnAuthorization =
      route.config.existingAuthorization === 'keep' && hasField(exchange.request.fields, 'authorization');
    const { stream } = exchange;
    this.#upgrade = stream.requestWhole ? stream.offeredProtocols : undefined;
    this.body = stream.requestWhole ? undefined : requestBodyOf(exchange.request, context.limits);
  }

  begin(): void {
    // The token is in hand for all but the first requests; those who have it need not wait for a microtask.
    const bearer = this.#bearer;
    const authorization = bearer?.current();
    if (bearer !== undefined && authorization === undefined) {
      void this.#sendWhenObtained(bearer);
      return;
    }
    const upstream = this.#acquire();
    if (upstream.ready) this.#write(upstream, authorization, this.#exchange.startedAtMs);
  }

  /** Sends what was written of the request; an app that is faster than the upstream has to wait. */
  flushRequest(): void {
    const flushed = this.#upstream?.flush() ?? true;
    if (!flushed) this.#holdApp();
  }

  /** The app takes more of the answer. */
  appReady(): void {
    this.#upstream?.resume();
  }

  /** Lets go of everything: the exchange has ended otherwise. */
  release(): void {
    this.#upstream?.abandon();
    this.#upstream = undefined;
    // Whose verdict did not come any more had an answer, as far as it went.
    this.#countReplay(this.#awaitsTrailers ? 'success' : 'failure');
  }

  /** The token is asked for again: it may have ended, or been renewed, while the connection was being made. */
  connected(instead?: UpstreamStream): void {
    if (instead !== undefined) this.#upstream = instead;
    const bearer = this.#bearer;
    const authorization = bearer?.current();
    if (bearer !== undefined && authorization === undefined && !this.#goesWithout) {
      this.#upstream?.giveBack();
      this.#upstream = undefined;
      void this.#sendWhenObtained(bearer);
      return;
    }
    this.#writeHeldUp(authorization);
  }

  informed(head: AnswerHead): void {
    this.#exchange.inform(head);
  }

  answered(head: AnswerHead, body: AnswerBody): void {
    const verdict = this.#exchange.isGrpc ? grpcHeadVerdict(head, body) : statusVerdict(head.status);
    const refused = verdict === 'refused' ? this.#authorization : undefined;
    if (refused !== undefined && this.#mayRenew() && this.#isWhole()) {
      this.#route.observer.upstreamUnauthorized();
      void this.#replayOrDeliver(refused, head, body);
      return;
    }
    if (verdict === 'in-trailers') this.#awaitsTrailers = true;
    else this.#heed(verdict);
    this.#deliver(head, body);
  }

  switched(head: AnswerHead): void {
    const upstream = this.#upstream;
    if (this.#upgrade === undefined || upstream === undefined) {
      throw new SidecarError(
        'upstream_protocol_error',
        'the upstream switched protocols without being asked',
      );
    }
    this.#heed('accepted');
    this.#upstream = undefined;
    this.#exchange.beginTunnel(101);
    const { idleMs } = this.#route.config.timeouts;
    this.#exchange.stream.becomeTunnel(head, upstream.tunnelEnd, idleMs);
  }

  answerData(slice: Buffer): void {
    this.#exchange.stream.data(slice);
  }

  answerEnded(trailers: readonly string[]): void {
    this.#upstream = undefined;
    if (this.#awaitsTrailers) this.#heed(grpcTrailersVerdict(trailers));
    this.#exchange.endAnswer(trailers);
  }

  flushAnswer(): void {
    if (!this.#exchange.stream.flush()) this.#upstream?.pause();
  }

  upstreamReady(): void {
    this.#exchange.stream.proceed();
  }

  /** Nothing has moved: who kept the other waiting is told, or where an answer has begun, it is cut. */
  stalled(): void {
    const { idleMs } = this.#route.config.timeouts;
    if (this.#exchange.begun) {
      const error = new SidecarError('upstream_timeout', `nothing moved for ${idleMs} ms`);
      logFailure(this.#context.log, this.#route.config.name, error);
      this.#exchange.cut();
      return;
    }
    const appIsSlow = this.#upstream?.allTaken && !this.#exchange.stream.awaitsContinue;
    const [code, what] = appIsSlow
      ? (['request_timeout', 'the request body did not go on'] as const)
      : (['upstream_timeout', 'nothing moved'] as const);
    this.#fail(new SidecarError(code, `${what} for ${idleMs} ms`));
  }

  upstreamFailed(error: SidecarError<ProxyErrorCode>, fate: RequestFate): void {
    this.#upstream = undefined;
    this.body?.detach();
    // An answer that has begun is not continued by another one.
    if (this.#exchange.begun || this.#sentAgain || !this.#maySendAgain(fate)) {
      this.#fail(error);
      return;
    }
    this.#sentAgain = true;
    this.#wasRefused = fate === 'unprocessed' && error instanceof UpstreamReset;
    // Its neighbours were most likely closed by the same hand.
    if (!this.#wasRefused) this.#route.upstream.discardIdle();
    this.#acquireOrFail();
  }

  /**
   * Where the token to inject comes from, if one is to be. TRACE answers with the request it got, so credentials must
   * not go out with it (RFC 9110 §9.3.8): the app would read the token.
   */
  get #bearer(): BearerSource | undefined {
    if (this.#keepsOwnAuthorization || this.#exchange.request.method === 'TRACE') return undefined;
    return this.#route.bearer;
  }

  /** Acts upon what an answer that is passed on says of the token. */
  #heed(verdict: TokenVerdict): void {
    const authorization = this.#authorization;
    if (authorization !== undefined && verdict === 'accepted') this.#bearer?.accepted(authorization);
    if (authorization !== undefined && verdict === 'refused') {
      this.#route.observer.upstreamUnauthorized();
      // Too late for this request, in time for the next.
      if (this.#mayRenew()) void this.#bearer?.replace(authorization);
    }
    this.#countReplay(verdict === 'refused' ? 'failure' : 'success');
  }

  async #sendWhenObtained(bearer: BearerSource): Promise<void> {
    this.#holdApp();
    let authorization: string | undefined;
    try {
      authorization = await bearer.obtain();
    } catch (error) {
      const passes = this.#route.config.whenTokenUnavailable === 'passthrough';
      if (!(passes && error instanceof TokenUnavailable)) {
        this.#fail(asProxyError(error));
        return;
      }
      this.#goesWithout = true;
    }
    if (!this.#exchange.over) this.#send(authorization);
  }

  /** Passes the refusal on as it came, unless there is another token. */
  async #replayOrDeliver(refused: string, head: AnswerHead, body: AnswerBody): Promise<void> {
    this.#upstream?.hold();
    this.#holdApp();
    try {
      const other = await this.#bearer?.replace(refused);
      if (this.#exchange.over) return;
      // More of the body may have come meanwhile than is kept.
      if (other !== undefined && other !== refused && this.#isWhole()) this.#replayWith(other);
      else this.#deliverHeld(head, body);
    } catch (error) {
      this.#fail(asProxyError(error));
    }
  }

  #replayWith(authorization: string): void {
    this.#replay = 'unanswered';
    this.#sentAgain = false;
    this.body?.detach();
    this.#upstream?.discard();
    this.#send(authorization);
  }

  #deliverHeld(head: AnswerHead, body: AnswerBody): void {
    this.#deliver(head, body);
    this.#upstream?.proceed();
    this.#exchange.stream.proceed();
  }

  /** Sends the request with a token that has just been obtained, or another one if there is no connection yet. */
  #send(authorization: string | undefined): void {
    if (this.#acquireOrFail()?.ready) this.#writeHeldUp(authorization);
  }

  #acquireOrFail(): UpstreamStream | undefined {
    try {
      return this.#acquire();
    } catch (error) {
      this.#fail(asProxyError(error));
      return undefined;
    }
  }

  /** Writes the request after a wait in which the app was held. */
  #writeHeldUp(authorization: string | undefined): void {
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    try {
      this.#write(upstream, authorization, this.#nowMs());
    } catch (error) {
      this.#fail(asProxyError(error));
      return;
    }
    this.#exchange.stream.proceed();
    this.flushRequest();
  }

  /** A connection; unless it is ready, `connected` is called when it is. */
  #acquire(): UpstreamStream {
    const streams = this.#route.upstream;
    const { request } = this.#exchange;
    const upstream = this.#sentAgain
      ? this.#wasRefused
        ? streams.acquireAgain(request, this)
        : streams.acquireNew(request, this)
      : streams.acquire(request, this, this.#trustMs());
    this.#upstream = upstream;
    if (!upstream.ready) this.#holdApp();
    return upstream;
  }

  #write(upstream: UpstreamStream, authorization: string | undefined, nowMs: number): void {
    this.#authorization = authorization;
    const request: OutgoingRequest = {
      from: this.#exchange.request,
      target: this.#target,
      authority: this.#route.config.upstream.authority,
      authorization,
      keepClientAuthorization: this.#keepsOwnAuthorization,
      instanceId: this.#context.instanceId,
      upgrade: this.#upgrade,
      hasBody: this.body !== undefined,
    };
    upstream.send(request, nowMs);
    this.sentBy = upstream.protocol;
    this.body?.sendTo(upstream, nowMs);
  }

  #deliver(head: AnswerHead, body: AnswerBody): void {
    this.body?.settle();
    this.#exchange.beginAnswer(head, body);
  }

  #mayRenew(): boolean {
    return this.#replay === 'none' && this.#route.config.retryOn401;
  }

  #maySendAgain(fate: RequestFate): boolean {
    if (fate === 'unsent' || fate === 'unprocessed') return this.#isWhole();
    return fate === 'unanswered' && this.#isSafeToRepeat();
  }

  #trustMs(): number {
    if (this.#isSafeToRepeat() && this.body?.mayOutgrow !== true) return FRESH_FOR_REPEATABLE_MS;
    // Many an upstream closes the connection after a 401.
    return this.#replay === 'none' ? FRESH_MS : 0;
  }

  #isSafeToRepeat(): boolean {
    return this.#isWhole() && isRepeatable(this.#exchange.request);
  }

  #isWhole(): boolean {
    return this.body?.whole ?? true;
  }

  /** A request that has come whole is not held up, so that an app that leaves is seen to leave. */
  #holdApp(): void {
    if (!this.#exchange.stream.requestWhole) this.#exchange.stream.hold();
  }

  #countReplay(result: ReplayResult): void {
    if (this.#replay !== 'unanswered') return;
    this.#replay = 'counted';
    this.#route.observer.replayed(result);
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
