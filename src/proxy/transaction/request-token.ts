import { SidecarError } from '../../platform/errors.ts';
import { GRPC_STATUS, type GrpcStatus } from '../../platform/grpc-status.ts';
import {
  type Authorization,
  type BearerSource,
  grpcProvesAcceptance,
  isSameToken,
  provesAcceptance,
  TokenUnavailable,
  type TokenWaiter,
} from '../../token/bearer-source.ts';
import { RequestProof } from '../../token/dpop/request-proof.ts';
import { type Fields, fieldValues } from '../http/fields.ts';
import { isGrpc } from '../http/messages.ts';
import type { ReplayResult, RequestRecorder } from '../observer.ts';
import type { ActiveRoute } from '../routing/routes.ts';
import type { IncomingRequest, OutgoingRequest, ResponseBody, ResponseHead } from '../streams/contract.ts';
import { keepsOwnCredentials } from './admission.ts';
import { grpcStatusOf } from './local-reply.ts';
import type { Transaction } from './transaction.ts';

/** A token must be obtained first. */
export const TO_OBTAIN = Symbol('no token is held');

const NONE: readonly string[] = [];

type Replay = 'none' | 'unanswered' | 'counted';

/** How a request is sent again. */
export interface Repeat {
  readonly why: string;
  /** Resolves to undefined if there is nothing to send. */
  token(): Promise<Authorization | undefined>;
  begun(): void;
}

type TokenUser = Pick<Transaction, 'request' | 'recorder' | 'caller'>;

export class RequestToken {
  readonly keepsOwnCredentials: boolean;
  readonly #route: ActiveRoute;
  /** Undefined where no token is injected. */
  readonly #bearer: BearerSource | undefined;
  readonly #recorder: RequestRecorder | undefined;
  #leaving: AbortController | undefined;
  #sent: Authorization | undefined;
  /** For tokens that need one. */
  #proof: RequestProof | undefined;
  /** The route lets the request go without an unavailable token. */
  #goesWithout = false;
  #replay: Replay = 'none';
  #awaitsTrailers = false;

  constructor(route: ActiveRoute, { request, recorder, caller }: TokenUser) {
    this.#route = route;
    this.#recorder = recorder;
    this.keepsOwnCredentials = keepsOwnCredentials(route, request);
    // A TRACE would show the app its token (RFC 9110 §9.3.8).
    const goesWithout =
      this.keepsOwnCredentials ||
      request.method === 'TRACE' ||
      route.placement?.takesToken(request) === false;
    this.#bearer = goesWithout ? undefined : bearerFor(route, request, caller);
  }

  get wasReplayed(): boolean {
    return this.#replay !== 'none';
  }

  /** Undefined where nothing is injected. */
  current(): Authorization | undefined | typeof TO_OBTAIN {
    if (this.#bearer === undefined) return undefined;
    return this.#bearer.current() ?? (this.#goesWithout ? undefined : TO_OBTAIN);
  }

  /** @throws {TokenUnavailable} unless the route lets the request go without. */
  async obtain(): Promise<Authorization | undefined> {
    try {
      return await this.#bearer?.obtain(this.#waiter());
    } catch (error) {
      const passes = this.#route.config.whenTokenUnavailable === 'passthrough';
      if (!(passes && error instanceof TokenUnavailable)) throw error;
      this.#goesWithout = true;
      return undefined;
    }
  }

  /** @returns what goes into the request. @param target as it is sent. */
  send(
    authorization: Authorization | undefined,
    method: string,
    target: string,
  ): Pick<OutgoingRequest, 'authorization' | 'proof'> {
    this.#sent = authorization;
    if (typeof authorization !== 'object') return { authorization, proof: undefined };
    this.#proof ??= new RequestProof(this.#route.config.upstream);
    return { authorization: authorization.value, proof: this.#proof.make(authorization, method, target) };
  }

  /**
   * @param verdict what the answer says of a token without a proof.
   * @param isWhole all of the request can be sent again.
   */
  judge(verdict: Verdict, head: ResponseHead, isWhole: boolean): { verdict: Verdict; repeat?: Repeat } {
    const sent = this.#sent;
    if (typeof sent === 'object' && this.#proof !== undefined) {
      const { fields } = head;
      // Gateways that refuse a gRPC call say UNAUTHENTICATED for 401, beside the same fields.
      const status = verdict === 'refused' ? 401 : head.status;
      const nonces = fieldValues(fields, 'dpop-nonce');
      const challenges = status === 401 ? fieldValues(fields, 'www-authenticate') : NONE;
      const ofProof = this.#proof.judge(sent, { status, nonces, challenges }, isWhole);
      if (ofProof === 'nonce_wanted') {
        const why = 'the upstream wants its nonce in the proof: sending again with it';
        return { verdict: 'none', repeat: { why, token: async () => sent, begun: () => undefined } };
      }
      if (ofProof !== 'none') {
        this.#route.reportRefusal(ofProof);
        this.#countReplay('failure');
        return { verdict: 'none' };
      }
    }
    const isReplaced = verdict === 'refused' && sent !== undefined && isWhole && this.#mayRenew();
    return isReplaced ? { verdict, repeat: this.#replacement(sent) } : { verdict };
  }

  #replacement(refused: Authorization): Repeat {
    return {
      why: 'the token was refused: sending again with another one',
      token: async () => {
        this.#route.observer.upstreamUnauthorized();
        const other = await this.#bearer?.replace(refused, this.#waiter());
        return other === undefined || isSameToken(other, refused) ? undefined : other;
      },
      begun: () => {
        this.#replay = 'unanswered';
      },
    };
  }

  apply(verdict: Verdict): void {
    if (verdict === 'in-trailers') {
      this.#awaitsTrailers = true;
      return;
    }
    const sent = this.#sent;
    if (sent !== undefined && verdict === 'accepted') this.#bearer?.accepted(sent);
    if (sent !== undefined && verdict === 'refused') {
      this.#route.observer.upstreamUnauthorized();
      this.reportRefusal();
      // Renewed for the next request.
      if (this.#mayRenew()) void this.#bearer?.replace(sent);
    }
    this.#countReplay(verdict === 'refused' ? 'failure' : 'success');
  }

  /** That the app gets the upstream's refusal of the token. */
  reportRefusal(): void {
    this.#route.reportRefusal(typeof this.#sent === 'object' ? 'bound_token' : 'token');
  }

  applyTrailers(trailers: readonly string[]): void {
    if (this.#awaitsTrailers) this.apply(grpcTrailersVerdict(trailers));
  }

  release(): void {
    this.#leaving?.abort();
    // A call without trailers was answered, as far as it went.
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

/** RFC 6750 §2.1, widened to all visible ASCII. */
const BEARER = /^bearer +([\x21-\x7e]{1,16384})$/i;

/**
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

type Verdict = TokenAcceptance | 'in-trailers';

type TokenAcceptance =
  | 'accepted'
  | 'refused'
  /** An upstream that failed or was overloaded may not have looked at the token. */
  | 'none';

/** 401 refuses (RFC 9110 §15.5.2). */
export function statusVerdict(status: number): TokenAcceptance {
  if (status === 401) return 'refused';
  return provesAcceptance(status) ? 'accepted' : 'none';
}

/**
 * A service that refuses before its first message answers with trailers only, in the head. Where messages may follow,
 * the verdict is `in-trailers`, since the 200 says nothing.
 */
export function grpcHeadVerdict(head: ResponseHead, body: ResponseBody): Verdict {
  if (head.status !== 200 || !isGrpc(head.fields)) return statusVerdict(head.status);
  return body === 'none' ? grpcVerdict(grpcStatusOf(head.fields)) : 'in-trailers';
}

function grpcTrailersVerdict(trailers: Fields): TokenAcceptance {
  return grpcVerdict(grpcStatusOf(trailers));
}

function grpcVerdict(status: GrpcStatus | undefined): TokenAcceptance {
  if (status === GRPC_STATUS.UNAUTHENTICATED) return 'refused';
  return grpcProvesAcceptance(status) ? 'accepted' : 'none';
}
