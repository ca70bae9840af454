import { SidecarError } from '../../platform/errors.ts';
import { GRPC_STATUS, type GrpcStatus } from '../../platform/grpc-status.ts';
import {
  type BearerSource,
  grpcProvesAcceptance,
  provesAcceptance,
  TokenUnavailable,
  type TokenWaiter,
} from '../../token/bearer-source.ts';
import { type Fields, fieldValues } from '../http/fields.ts';
import { isGrpc } from '../http/messages.ts';
import type { ReplayResult, RequestRecorder } from '../observer.ts';
import type { ActiveRoute } from '../routing/routes.ts';
import type { AnswerBody, AnswerHead, IncomingRequest } from '../streams/contract.ts';
import { keepsOwn } from './admission.ts';
import { grpcStatusOf } from './local-reply.ts';
import type { Transaction } from './transaction.ts';

/** Returned instead of a token where one must be obtained first. */
export const TO_OBTAIN = Symbol('no token is held');

/** Whether the request was sent once more because its token was refused, and that has been counted. */
type Replay = 'none' | 'unanswered' | 'counted';

/** The transaction that the token is for. */
type TokenUser = Pick<Transaction, 'request' | 'recorder' | 'caller'>;

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

  /** The transaction has ended some other way. */
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

/** The token that a request brings, to be exchanged for another (RFC 8693): RFC 6750 §2.1, widened to all visible ASCII. */
const BEARER = /^bearer +([\x21-\x7e]{1,16384})$/i;

/**
 * The source of the request's token; on most routes the same for every request.
 * @param caller unique to the caller, where callers are told apart.
 * @throws {SidecarError} `subject_token_missing`.
 */
function bearerFor(
  { bearer, config }: ActiveRoute,
  { fields }: IncomingRequest,
  caller: string | undefined,
): BearerSource | undefined {
  if (bearer?.bySubject === undefined) return bearer;
  const values = fieldValues(fields, 'authorization');
  const subject = values.length === 1 ? BEARER.exec(values[0] as string)?.[1] : undefined;
  if (subject === undefined) {
    throw new SidecarError(
      'subject_token_missing',
      `route ${config.name} exchanges the token of the request, which has to have one: Authorization: Bearer, once, up to 16 KiB`,
    );
  }
  return bearer.bySubject(subject, caller);
}

/** What an answer says of the token that its request was sent with. */
type TokenVerdict =
  | 'accepted'
  | 'refused'
  /** No verdict: an upstream that failed or was overloaded may never have looked at the token. */
  | 'none';

/** The verdict of an answer's head, by its status; 401 refuses (RFC 9110 §15.5.2). */
export function statusVerdict(status: number): TokenVerdict {
  if (status === 401) return 'refused';
  return provesAcceptance(status) ? 'accepted' : 'none';
}

/**
 * The verdict of the head of the answer to a gRPC call. A service that refuses a call before its first message answers
 * with trailers only, in the head; nothing of that answer has been passed on yet. Where messages may follow, the
 * verdict is `in-trailers`: the 200 and its head are sent before anything is decided.
 */
export function grpcHeadVerdict(head: AnswerHead, body: AnswerBody): TokenVerdict | 'in-trailers' {
  if (head.status !== 200 || !isGrpc(head.fields)) return statusVerdict(head.status);
  return body === 'none' ? grpcVerdict(grpcStatusOf(head.fields)) : 'in-trailers';
}

/** The verdict of the trailers of an answer to a gRPC call. */
function grpcTrailersVerdict(trailers: Fields): TokenVerdict {
  return grpcVerdict(grpcStatusOf(trailers));
}

function grpcVerdict(status: GrpcStatus | undefined): TokenVerdict {
  if (status === GRPC_STATUS.UNAUTHENTICATED) return 'refused';
  return grpcProvesAcceptance(status) ? 'accepted' : 'none';
}
