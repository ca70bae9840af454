import type { BearerSource, TokenWaiter } from '../../token/bearer-source.ts';
import { TokenUnavailable } from '../../token/token-unavailable.ts';
import type { ReplayResult, RequestFollower } from '../observer.ts';
import type { ActiveRoute } from '../routing/active-route.ts';
import { keepsOwn } from './own-identity.ts';
import type { ServedExchange } from './request-service.ts';
import { bearerFor } from './subject-token.ts';
import { grpcTrailersVerdict, type TokenVerdict } from './token-verdict.ts';

/** Said instead of a token where one has to be obtained first. */
export const TO_OBTAIN = Symbol('no token is held');

/** Whether the request was sent once more because its token was refused, and that has been counted. */
type Replay = 'none' | 'unanswered' | 'counted';

/** The exchange that it is for. */
type TokenUser = Pick<ServedExchange, 'request' | 'follower' | 'caller'>;

/** The token that one request is sent with: where it comes from, and what becomes of it by the answer. */
export class RequestToken {
  /** Whether the identity that the app shows by itself is left as it is. */
  readonly keepsOwn: boolean;
  readonly #route: ActiveRoute;
  /** Undefined where none is injected. */
  readonly #bearer: BearerSource | undefined;
  readonly #follower: RequestFollower | undefined;
  /** Made where the request waits for a token. */
  #leaving: AbortController | undefined;
  /** What was sent last. */
  #sent: string | undefined;
  /** No token was to be had, and the route lets the request go without. */
  #goesWithout = false;
  #replay: Replay = 'none';
  /** Whether it is for the trailers of the answer to say what became of the token. */
  #awaitsTrailers = false;

  constructor(route: ActiveRoute, { request, follower, caller }: TokenUser) {
    this.#route = route;
    this.#follower = follower;
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

  /** What to send at this moment: undefined where nothing is injected. */
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

  /** The token that an answer refuses, where another may be asked for in its place. */
  refusedBy(verdict: TokenVerdict | 'in-trailers'): string | undefined {
    return verdict === 'refused' && this.#mayRenew() ? this.#sent : undefined;
  }

  /** Asks for another in place of one that an upstream refused; undefined, or the same, where there is none. */
  async replace(refused: string): Promise<string | undefined> {
    this.#route.observer.upstreamUnauthorized();
    return this.#bearer?.replace(refused, this.#waiter());
  }

  /** The request is sent again with another. */
  replayed(): void {
    this.#replay = 'unanswered';
  }

  /** Acts upon what an answer that is passed on says of the token, unless its trailers are to say it. */
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

  /** The exchange has ended otherwise. */
  release(): void {
    this.#leaving?.abort();
    // Whose verdict did not come any more had an answer, as far as it went.
    this.#countReplay(this.#awaitsTrailers ? 'success' : 'failure');
  }

  #waiter(): TokenWaiter {
    this.#leaving ??= new AbortController();
    const follower = this.#follower;
    const awaits = follower === undefined ? undefined : follower.awaits.bind(follower);
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
