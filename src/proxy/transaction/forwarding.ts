import type { Socket } from 'node:net';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Authorization } from '../../token/bearer-source.ts';
import { authenticatesConnection, type Protocol } from '../http/messages.ts';
import { asProxyError } from '../proxy-error.ts';
import type { ActiveRoute, Destination } from '../routing/routes.ts';
import type {
  ConnectionOwner,
  Delivery,
  OutgoingRequest,
  ResponseBody,
  ResponseHead,
  UpstreamStream,
  UpstreamUser,
} from '../streams/contract.ts';
import { stallError } from '../streams/stall-timeouts.ts';
import { withToken } from '../streams/token-placement.ts';
import type { ListenerContext, RequestService } from './listener-context.ts';
import { type RequestBody, requestBodyOf } from './replayable-body.ts';
import { grpcHeadVerdict, type Repeat, RequestToken, statusVerdict, TO_OBTAIN } from './request-token.ts';
import { acquireFor, attemptAfter, FIRST, FRESH_FOR_REPEATABLE_MS, FRESH_MS, isRepeatable } from './retry.ts';
import type { Transaction } from './transaction.ts';

export class Forwarding implements RequestService, UpstreamUser {
  readonly body: RequestBody | undefined;
  sentBy: Protocol | undefined;
  readonly #transaction: Transaction;
  readonly #context: ListenerContext;
  readonly #route: ActiveRoute;
  readonly #target: string;
  readonly #token: RequestToken;
  readonly #upgrade: string | undefined;
  /** Whether the app's Authorization authenticates the connection. */
  readonly #ties: boolean;
  #upstream: UpstreamStream | undefined;
  #downstreamNeedsDrain = false;
  #attempt = FIRST;
  #sentAtMs = 0;

  constructor(transaction: Transaction, context: ListenerContext, { route, target }: Destination) {
    this.#transaction = transaction;
    this.#context = context;
    this.#route = route;
    this.#target = target;
    this.#token = new RequestToken(route, transaction);
    const { stream, request } = transaction;
    this.#ties = this.#token.keepsOwnCredentials && authenticatesConnection(request.fields);
    this.#upgrade = stream.requestComplete ? stream.offeredProtocols : undefined;
    this.body = stream.requestComplete
      ? undefined
      : requestBodyOf(request, context.snapshot().limits, route.placement);
  }

  get caller(): string | undefined {
    return this.#transaction.caller;
  }

  get owner(): ConnectionOwner | undefined {
    return this.#transaction.stream.ownerFor(this.#transaction.caller);
  }

  get heldBytes(): number {
    return (this.body?.heldBytes ?? 0) + (this.#upstream?.heldBytes ?? 0);
  }

  get upstreamSocket(): Socket | undefined {
    return this.#upstream?.ownSocket;
  }

  /** @throws {SidecarError} `authorization_needs_http1`. */
  begin(): void {
    if (this.#ties && this.owner === undefined) {
      throw new SidecarError(
        'authorization_needs_http1',
        'the request came by HTTP/2, which several share: NTLM and Negotiate need HTTP/1.1',
      );
    }
    const authorization = this.#token.current();
    if (authorization === TO_OBTAIN) {
      void this.#sendWhenObtained();
      return;
    }
    const upstream = this.#acquire();
    if (upstream.ready) this.#write(upstream, authorization, this.#transaction.startedAtMs);
  }

  flushRequest(): void {
    const flushed = this.#upstream?.flush() ?? true;
    if (!flushed) this.#holdApp();
  }

  onDownstreamDrain(): void {
    this.#downstreamNeedsDrain = false;
    this.#upstream?.resume();
  }

  release(): void {
    this.#upstream?.cancel();
    this.#upstream = undefined;
    this.#token.release();
  }

  /** Asks for the token again: it may have changed while connecting. */
  onConnected(instead?: UpstreamStream): void {
    if (instead !== undefined) this.#upstream = instead;
    const authorization = this.#token.current();
    if (authorization === TO_OBTAIN) {
      this.#upstream?.release();
      this.#upstream = undefined;
      void this.#sendWhenObtained();
      return;
    }
    this.#writeHeldUp(authorization);
  }

  onInterim(head: ResponseHead): void {
    this.#transaction.inform(head);
  }

  onResponse(head: ResponseHead, body: ResponseBody): void {
    this.#route.observer.upstreamAnswered(this.#nowMs() - this.#sentAtMs);
    this.#transaction.recorder?.onResponse(head.status);
    const verdict = this.#transaction.isGrpc ? grpcHeadVerdict(head, body) : statusVerdict(head.status);
    const judged = this.#token.judge(verdict, head, this.#isComplete());
    if (judged.repeat !== undefined) {
      void this.#repeatOrDeliver(judged.repeat, head, body);
      return;
    }
    this.#token.apply(judged.verdict);
    this.#deliver(head, body);
  }

  onSwitched(head: ResponseHead): void {
    const upstream = this.#upstream;
    if (this.#upgrade === undefined || upstream === undefined) {
      throw new SidecarError(
        'upstream_protocol_error',
        'the upstream switched protocols without being asked',
      );
    }
    this.#route.observer.upstreamAnswered(this.#nowMs() - this.#sentAtMs);
    this.#transaction.recorder?.onResponse(head.status);
    this.#token.apply('accepted');
    this.#upstream = undefined;
    this.#transaction.beginTunnel(101);
    const { idleMs } = this.#route.config.timeouts;
    this.#transaction.stream.becomeTunnel(
      head,
      upstream.tunnelEnd,
      idleMs,
      this.#transaction.recorder?.bytes,
    );
  }

  onData(slice: Buffer): void {
    const { recorder, stream } = this.#transaction;
    if (recorder !== undefined) recorder.bytes.toApp += slice.length;
    stream.data(slice);
  }

  onEnd(trailers: readonly string[]): void {
    this.#upstream = undefined;
    this.#transaction.recorder?.onResponseEnd();
    this.#token.applyTrailers(trailers);
    this.#transaction.endResponse(trailers);
  }

  onReadEnd(): void {
    if (this.#transaction.stream.flush()) return;
    this.#downstreamNeedsDrain = true;
    this.#upstream?.pause();
  }

  onDrain(): void {
    this.#transaction.stream.resume();
  }

  onStalled(): void {
    const { begun, stream } = this.#transaction;
    this.#fail(
      stallError(this.#route.config.timeouts, {
        begun,
        downstreamNeedsDrain: this.#downstreamNeedsDrain,
        allTaken: this.#upstream?.drained === true,
        awaitsContinue: stream.awaitsContinue,
      }),
    );
  }

  onError(error: SidecarError<ProxyErrorCode>, delivery: Delivery): void {
    this.#upstream = undefined;
    this.#transaction.recorder?.attemptFailed(error.code);
    this.body?.detach();
    const next = attemptAfter(this.#attempt, error, delivery, {
      whole: this.#isComplete(),
      repeatable: this.#isSafeToRepeat(),
    });
    if (this.#transaction.begun || next === undefined) {
      this.#fail(error);
      return;
    }
    this.#attempt = next;
    this.#tell(`sending again, ${next.kind}: ${error.message}`);
    // Its neighbours are probably closed too.
    if (next.kind === 'anew') this.#route.upstream.discardIdle(this);
    this.#acquireOrFail();
  }

  async #sendWhenObtained(): Promise<void> {
    this.#holdApp();
    try {
      const authorization = await this.#token.obtain();
      if (!this.#transaction.over) this.#send(authorization);
    } catch (error) {
      this.#fail(asProxyError(error));
    }
  }

  async #repeatOrDeliver(repeat: Repeat, head: ResponseHead, body: ResponseBody): Promise<void> {
    this.#upstream?.holdResponse();
    this.#holdApp();
    try {
      const authorization = await repeat.token();
      if (this.#transaction.over) return;
      // The body may have outgrown the buffer by now.
      if (authorization !== undefined && this.#isComplete()) this.#repeat(repeat, authorization);
      else this.#deliverHeld(head, body);
    } catch (error) {
      this.#fail(asProxyError(error));
    }
  }

  #repeat({ why, begun }: Repeat, authorization: Authorization): void {
    begun();
    this.#tell(why);
    this.#transaction.recorder?.onResponseEnd();
    this.#attempt = FIRST;
    this.body?.detach();
    this.#upstream?.cancel({ drain: true });
    this.#send(authorization);
  }

  #deliverHeld(head: ResponseHead, body: ResponseBody): void {
    this.#token.reportRefusal();
    this.#deliver(head, body);
    this.#upstream?.releaseResponse();
    this.#transaction.stream.resume();
  }

  /** If there is no connection yet, `onConnected` asks for the token again. */
  #send(authorization: Authorization | undefined): void {
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

  #writeHeldUp(authorization: Authorization | undefined): void {
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    try {
      this.#write(upstream, authorization, this.#nowMs());
    } catch (error) {
      this.#fail(asProxyError(error));
      return;
    }
    this.#transaction.stream.resume();
    this.flushRequest();
  }

  #acquire(): UpstreamStream {
    const { request } = this.#transaction;
    const upstream = acquireFor(this.#attempt, this.#route.upstream, request, this, this.#maxIdleMs());
    this.#upstream = upstream;
    if (!upstream.ready) this.#holdApp();
    return upstream;
  }

  #write(upstream: UpstreamStream, authorization: Authorization | undefined, nowMs: number): void {
    const { request: asked, recorder } = this.#transaction;
    const request: OutgoingRequest = {
      from: recorder === undefined ? asked : recorder.sending(asked, this.#target),
      target: this.#target,
      authority: this.#route.config.upstream.authority,
      ...this.#token.send(authorization, asked.method, this.#target),
      keepClientAuthorization: this.#token.keepsOwnCredentials,
      instanceId: this.#context.instanceId,
      upgrade: this.#upgrade,
      hasBody: this.body !== undefined,
    };
    if (this.#ties) upstream.tie();
    upstream.send(withToken(request, this.#route.placement), nowMs);
    this.#sentAtMs = nowMs;
    this.sentBy = upstream.protocol;
    this.body?.sendTo(upstream, nowMs);
  }

  #deliver(head: ResponseHead, body: ResponseBody): void {
    this.body?.settle();
    this.#transaction.beginResponse(head, body);
  }

  #maxIdleMs(): number {
    if (this.#isSafeToRepeat() && this.body?.mayOutgrow !== true) return FRESH_FOR_REPEATABLE_MS;
    // Many upstreams close the connection after a 401.
    return this.#token.wasReplayed ? 0 : FRESH_MS;
  }

  #isSafeToRepeat(): boolean {
    return this.#isComplete() && isRepeatable(this.#transaction.request);
  }

  #isComplete(): boolean {
    return this.body?.whole ?? true;
  }

  /** An app whose request is whole is read on, so that its leaving is noticed. */
  #holdApp(): void {
    if (!this.#transaction.stream.requestComplete) this.#transaction.stream.pause();
  }

  #tell(what: string): void {
    this.#context.log.debug(
      { route: this.#route.config.name, requestId: this.#transaction.identify() },
      what,
    );
  }

  #fail(error: SidecarError<ProxyErrorCode>): void {
    if (this.#transaction.over) return;
    this.#transaction.report(error);
    this.#transaction.fail(error);
  }

  #nowMs(): number {
    return this.#context.clock.monotonicMs();
  }
}
