import { type BearerSource, TokenUnavailable, type TokenWaiter } from '../../token/bearer-source.ts';
import type { ReplayResult, RequestRecorder } from '../observer.ts';
import type { ActiveRoute } from '../routing/active-route.ts';
import { keepsOwn } from './own-identity.ts';
import type { ServedExchange } from './request-service.ts';
import { bearerFor } from './subject-token.ts';
import { grpcTrailersVerdict, type TokenVerdict } from './token-verdict.ts';

/** Returned instead of a token where one must be obtained first. */
export const TO_OBTAIN = Symbol('no token is held');

/** Whether the request was sent once more because its token was refused, and that has been counted. */
type Replay = 'none' | 'unanswered' | 'counted';

/** The exchange that the token is for. */
type TokenUser = Pick<ServedExchange, 'request' | 'recorder' | 'caller'>;

/** The token of one request: where it comes from, and what the answer says of it. */
export class RequestToken {
  /** Whether the app's own identity is kept. */
  readonly keepsOwn: boolean;
  readonly #route: ActiveRoute;
  /** Undefined where no token is injected. */
  readonly #bearer: BearerSource | undefined;
  readonly #recorder: RequestRecorder | undefined;
  /** Created once the request waits for a token. */
  #leaving: AbortController | undefined;
  /** What was sent last. */
  #sent: string | undefined;
  /** No token was available, and the route lets the request go without. */
  #goesWithout = false;
  #replay: Replay = 'none';
  /** Whether the trailers of the answer will give the verdict on the token. */
  #awaitsTrailers = false;

  constructor(route: ActiveRoute, { request, recorder, caller }: TokenUser) {
    this.#route = route;
    this.#recorder = recorder;
    this.keepsOwn = keepsOwn(route, request);
    // TRACE answers with the request it got, so credentials must not go out with it (RFC 9110 §9.3.8): the app would read
    // the token.
    const goesWithout =
      this.keepsOwn || request.method === 'TRACE' || route.placement?.takesToken(request) === false;
    this.#bearer = goesWithout ? undefined : bearerFor(route, request, caller);
  }

  /** Whether the request has been sent again with another token. */
  get wasReplayed(): boolean {
    return this.#replay !== 'none';
  }

  /** What to send now: undefined where nothing is injected. */
  current(): string | undefined | typeof TO_OBTAIN {
    if (this.#bearer === undefined) return undefined;
    return this.#bearer.current() ?? (this.#goesWithout ? undefined : TO_OBTAIN);
  }

  /** Waits for a token. @throws {TokenUnavailable} unless the route lets the request go without. */
  async obtain(): Promise<string | undefined> {
    try {
      return await this.#bearer?.obtain(this.#waiter());
    } catch (error) {
      const passes = this.#route.config.whenTokenUnavailable === 'passthrough';
      if (!(passes && error instanceof TokenUnavailable)) throw error;
      this.#goesWithout = true;
      return undefined;
    }
  }

  sentWith(authorization: string | undefined): void {
    this.#sent = authorization;
  }

  /** The token that an answer refuses, if a replacement may be asked for. */
  refusedBy(verdict: TokenVerdict | 'in-trailers'): string | undefined {
    return verdict === 'refused' && this.#mayRenew() ? this.#sent : undefined;
  }

  /** Asks for a replacement of a refused token; undefined, or the same token, if there is none. */
  async replace(refused: string): Promise<string | undefined> {
    this.#route.observer.upstreamUnauthorized();
    return this.#bearer?.replace(refused, this.#waiter());
  }

  /** The request is sent again with another token. */
  replayed(): void {
    this.#replay = 'unanswered';
  }

  /** Acts on the verdict of an answer that is passed on, unless its trailers will give it. */
  heed(verdict: TokenVerdict | 'in-trailers'): void {
    if (verdict === 'in-trailers') {
      this.#awaitsTrailers = true;
      return;
    }
    const sent = this.#sent;
    if (sent !== undefined && verdict === 'accepted') this.#bearer?.accepted(sent);
    if (sent !== undefined && verdict === 'refused') {
      this.#route.observer.upstreamUnauthorized();
      // Too late for this request, in time for the next.
      if (this.#mayRenew()) void this.#bearer?.replace(sent);
    }
    this.#countReplay(verdict === 'refused' ? 'failure' : 'success');
  }

  heedTrailers(trailers: readonly string[]): void {
    if (this.#awaitsTrailers) this.heed(grpcTrailersVerdict(trailers));
  }

  /** The exchange has ended some other way. */
  release(): void {
    this.#leaving?.abort();
    // A call whose trailers never came was answered, as far as it went.
    this.#countReplay(this.#awaitsTrailers ? 'success' : 'failure');
  }

  #waiter(): TokenWaiter {
    this.#leaving ??= new AbortController();
    const recorder = this.#recorder;
    const awaits = recorder === undefined ? undefined : recorder.awaits.bind(recorder);
    return { awaits, gone: this.#leaving.signal };
  }

  #mayRenew(): boolean {
    return this.#replay === 'none' && this.#route.config.retryOn401;
  }

  #countReplay(result: ReplayResult): void {
    if (this.#replay !== 'unanswered') return;
    this.#replay = 'counted';
    this.#route.observer.replayed(result);
  }
}
