/**
 * One request's life: examined, routed, given its token, sent, perhaps sent once more, answered.
 */

import type { Clock } from '../clock.ts';
import type { ProxyLimits, RouteConfig } from '../config/config.ts';
import { ERRORS, type ErrorCode, messageOf, type ProxyErrorCode, SidecarError } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { BearerSource } from '../token/bearer-source.ts';
import { TokenUnavailable } from '../token/token-unavailable.ts';
import { deliverAnswer, discardAnswer } from './answer.ts';
import type { Exchange, ProxyLoad } from './exchange.ts';
import { fieldValues, hasPassed, upstreamFields } from './header-rules.ts';
import { IdleBound } from './idle-bound.ts';
import type { RouteMetrics } from './metrics.ts';
import { RequestBody } from './request-body.ts';
import { type ExaminedRequest, examineRequest } from './request-head.ts';
import { matchRoute, type RouteMatcher, upstreamTarget } from './routes.ts';
import { type EarlyBytes, runTunnel } from './upgrade.ts';
import { type UpstreamAnswer, UpstreamAttempt } from './upstream-attempt.ts';
import type { UpstreamPool } from './upstream-pool.ts';

/** A configured route with what it takes to serve it. */
export interface ActiveRoute {
  readonly config: RouteConfig;
  readonly matcher: RouteMatcher;
  readonly pool: UpstreamPool;
  readonly bearer: BearerSource;
  readonly metrics: RouteMetrics;
}

export interface ForwardingContext {
  readonly routes: readonly ActiveRoute[];
  readonly limits: ProxyLimits;
  readonly clock: Clock;
  readonly log: Logger;
  readonly instanceId: string;
  /** Counts what no route matched. */
  readonly noRoute: RouteMetrics;
  readonly load: ProxyLoad;
}

/** RFC 9110 §9.2.2, of the methods that the parser knows. */
const IDEMPOTENT: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'TRACE']);

/** Methods without a body by nature; of any other, a missing content-length says nothing (RFC 9110 §8.6). */
const BODILESS: ReadonlySet<string> = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'TRACE']);

/**
 * Serves one request. Every end of it, good or bad, is on `exchange`; nothing is thrown.
 * @param early the connection's bytes, if the engine has given it up because the request asks for a switch of protocols.
 */
export function forward(exchange: Exchange, context: ForwardingContext, early?: EarlyBytes): void {
  try {
    const { request, route } = admit(exchange, context);
    new Forwarding(exchange, context, request, route, early).run();
  } catch (error) {
    exchange.refuse(asProxyError(error));
  }
}

/** Decides whether the request may go on, and where to, before anything is spent on it. */
function admit(
  exchange: Exchange,
  context: ForwardingContext,
): { request: ExaminedRequest; route: ActiveRoute } {
  const { incoming } = exchange;
  const { limits, load } = context;
  const fields = incoming.rawHeaders;
  const request = examineRequest(
    { method: incoming.method ?? '', target: incoming.url ?? '', version: incoming.httpVersion, fields },
    limits,
  );
  if (load.draining) throw new SidecarError('draining', 'the sidecar takes no new requests');
  if (hasPassed(fields, context.instanceId)) {
    throw new SidecarError('loop_detected', 'the request has already passed this sidecar');
  }
  const route = matchRoute(context.routes, request.host, request.path);
  if (route === undefined) {
    throw new SidecarError('route_not_found', 'no route has this host and path');
  }
  exchange.attribute(route.metrics);
  const { config } = route;
  if (config.existingAuthorization === 'reject' && fieldValues(fields, 'authorization').length > 0) {
    throw new SidecarError(
      'authorization_not_allowed',
      `route ${config.name} takes no request that has Authorization`,
    );
  }
  const { framing } = request;
  if (limits.requestBodyBytes > 0 && framing.kind === 'length' && framing.bytes > limits.requestBodyBytes) {
    throw bodyTooLarge(limits);
  }
  if (load.inFlight >= limits.maxInFlight) {
    throw new SidecarError('overloaded', `${limits.maxInFlight} requests are in flight`);
  }
  exchange.admit(route.metrics);
  return { request, route };
}

class Forwarding {
  readonly #exchange: Exchange;
  readonly #context: ForwardingContext;
  readonly #request: ExaminedRequest;
  readonly #route: ActiveRoute;
  readonly #early: EarlyBytes | undefined;
  readonly #method: string;
  readonly #body: RequestBody;
  readonly #idle: IdleBound;
  readonly #keepsOwnAuthorization: boolean;
  #attempt: UpstreamAttempt | undefined;

  constructor(
    exchange: Exchange,
    context: ForwardingContext,
    request: ExaminedRequest,
    route: ActiveRoute,
    early: EarlyBytes | undefined,
  ) {
    this.#exchange = exchange;
    this.#context = context;
    this.#request = request;
    this.#route = route;
    this.#early = early;
    const { incoming, outgoing } = exchange;
    this.#method = incoming.method ?? '';
    this.#keepsOwnAuthorization =
      route.config.existingAuthorization === 'keep' &&
      fieldValues(incoming.rawHeaders, 'authorization').length > 0;
    this.#idle = new IdleBound(context.clock, route.config.timeouts.idleMs, () => this.#onIdle());
    this.#body = new RequestBody(incoming, {
      present: request.framing.kind !== 'none',
      replayBytes: this.#replayBytes(),
      maxBytes: context.limits.requestBodyBytes,
      onProgress: () => this.#idle.touch(),
      onTooLarge: () => this.#refuse(bodyTooLarge(context.limits)),
      onComplete: () => {
        if (!outgoing.headersSent || outgoing.writableFinished) this.#idle.stop();
      },
    });
    outgoing.on('close', () => {
      if (this.#body.complete) this.#idle.stop();
    });
    exchange.onAborted(() => {
      this.#idle.stop();
      this.#attempt?.abandon();
    });
  }

  run(): void {
    // The token is in hand for all but the first requests; those who have it need not wait for a microtask.
    const held = this.#injects ? this.#route.bearer.current() : undefined;
    const served = held !== undefined || !this.#injects ? this.#serve(held) : this.#serveWhenObtained();
    served.catch((error: unknown) => this.#refuse(asProxyError(error)));
  }

  /**
   * TRACE answers with the request it got, so credentials must not go out with it (RFC 9110 §9.3.8): the app would
   * read the token.
   */
  get #injects(): boolean {
    return !this.#keepsOwnAuthorization && this.#method !== 'TRACE';
  }

  async #serveWhenObtained(): Promise<void> {
    let authorization: string | undefined;
    try {
      authorization = await this.#route.bearer.obtain();
    } catch (error) {
      const passes = this.#route.config.whenTokenUnavailable === 'passthrough';
      if (!(passes && error instanceof TokenUnavailable)) throw error;
    }
    if (!this.#exchange.over) await this.#serve(authorization);
  }

  async #serve(authorization: string | undefined): Promise<void> {
    let answer = await this.#ask(authorization);
    if (this.#exchange.over) {
      // No longer the attempt's to abandon.
      answer.tunnel?.socket.destroy();
      return;
    }
    if (answer.message.statusCode === 401 && authorization !== undefined) {
      this.#route.metrics.upstreamUnauthorized();
      const other = await this.#otherThan(authorization);
      if (this.#exchange.over) return;
      if (other !== undefined) answer = await this.#replay(answer, other);
    }
    if (!this.#exchange.over) this.#deliver(answer);
  }

  /** Another token worth a replay of this request, after the upstream has refused one. */
  async #otherThan(refused: string): Promise<string | undefined> {
    if (!this.#route.config.retryOn401 || !this.#body.whole) return undefined;
    this.#body.hold();
    this.#idle.stop();
    const other = await this.#route.bearer.replace(refused);
    return other === refused ? undefined : other;
  }

  async #replay(refused: UpstreamAnswer, authorization: string): Promise<UpstreamAnswer> {
    // An upload half sent would block the connection; a whole one leaves it fit for use.
    if (refused.attempt.request.writableFinished) discardAnswer(refused.message, this.#context.clock);
    else refused.attempt.abandon();
    let result: 'success' | 'failure' = 'failure';
    try {
      const answer = await this.#ask(authorization);
      if (answer.message.statusCode === 401) this.#route.metrics.upstreamUnauthorized();
      else result = 'success';
      return answer;
    } finally {
      this.#route.metrics.replayed(result);
    }
  }

  /** Sends the request; once more if a connection of the pool turns out to have died while it was idle. */
  async #ask(authorization: string | undefined): Promise<UpstreamAnswer> {
    const attempt = this.#begin(authorization);
    try {
      return await attempt.answer;
    } catch (error) {
      if (this.#exchange.over || !attempt.diedUnanswered || !this.#isSafeToRepeat()) throw error;
    }
    // Its neighbours were most likely closed by the same hand.
    this.#route.pool.discardIdle();
    return await this.#begin(authorization).answer;
  }

  #begin(authorization: string | undefined): UpstreamAttempt {
    const { config, matcher, pool } = this.#route;
    const { upgrade } = this.#request;
    const switching = this.#early === undefined ? undefined : upgrade;
    const head = {
      method: this.#method,
      target: upstreamTarget(config, matcher, this.#request),
      fields: upstreamFields(this.#exchange.incoming.rawHeaders, {
        authority: config.upstream.authority,
        authorization,
        keepClientAuthorization: this.#keepsOwnAuthorization,
        instanceId: this.#context.instanceId,
        framing: this.#request.framing.kind,
        upgrade: switching,
        sayEmpty: this.#request.framing.kind === 'none' && !BODILESS.has(this.#method),
      }),
    };
    const attempt = new UpstreamAttempt(
      switching === undefined ? pool.request(head) : pool.requestUpgrade(head),
      {
        route: config,
        clock: this.#context.clock,
        mayUpgrade: switching !== undefined,
        onInformation: (status, fields) => {
          this.#idle.touch();
          this.#exchange.inform(status, fields);
        },
      },
    );
    this.#attempt = attempt;
    this.#body.sendTo(attempt.request);
    if (!this.#body.complete) this.#idle.start();
    return attempt;
  }

  #deliver({ message, tunnel }: UpstreamAnswer): void {
    const exchange = this.#exchange;
    if (tunnel !== undefined && this.#early !== undefined) {
      runTunnel(exchange, this.#early, message, tunnel.socket, tunnel.head, this.#idle);
      return;
    }
    if (this.#context.load.draining) exchange.closeAfterAnswer();
    deliverAnswer(message, exchange, this.#idle);
    this.#body.settle();
  }

  #refuse(error: SidecarError<ProxyErrorCode>): void {
    if (this.#exchange.over) return;
    this.#log(error);
    this.#body.discard();
    this.#exchange.refuse(error);
  }

  /** Nothing has moved: an upstream that takes no more of the body is told on, the rest is cut. */
  #onIdle(): void {
    const { outgoing } = this.#exchange;
    const error = new SidecarError(
      'upstream_timeout',
      `nothing moved for ${this.#route.config.timeouts.idleMs} ms`,
    );
    if (!outgoing.headersSent && !this.#waitsForApp()) {
      this.#refuse(error);
      return;
    }
    this.#log(error);
    this.#exchange.cut();
  }

  #waitsForApp(): boolean {
    return this.#body.awaitsApp && !this.#exchange.expectsContinue;
  }

  #isSafeToRepeat(): boolean {
    if (!this.#body.whole) return false;
    return (
      IDEMPOTENT.has(this.#method) ||
      fieldValues(this.#exchange.incoming.rawHeaders, 'idempotency-key').length > 0
    );
  }

  #replayBytes(): number {
    const { framing } = this.#request;
    const { replayBytes } = this.#context.limits;
    // A body that will not fit is not even begun to be kept.
    return framing.kind === 'length' && framing.bytes > replayBytes ? 0 : replayBytes;
  }

  #log(error: SidecarError<ProxyErrorCode>): void {
    const cause = error.cause === undefined ? undefined : messageOf(error.cause);
    this.#context.log.warn(
      { route: this.#route.config.name, error: error.code, reason: error.message, cause },
      'request not completed',
    );
  }
}

function bodyTooLarge(limits: ProxyLimits): SidecarError<'request_too_large'> {
  return new SidecarError(
    'request_too_large',
    `the request body is larger than ${limits.requestBodyBytes} bytes`,
  );
}

/** Anything thrown as an error that the proxy may answer; what was not foreseen shows nothing of itself. */
function asProxyError(error: unknown): SidecarError<ProxyErrorCode> {
  if (error instanceof SidecarError && 'status' in ERRORS[error.code as ErrorCode]) {
    return error as SidecarError<ProxyErrorCode>;
  }
  return new SidecarError('internal', 'an unexpected error in the sidecar', { cause: error });
}
