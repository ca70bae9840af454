/** Who asks for a token, and whether the profile is for them. */

import {
  type AuthenticationResult,
  type Caller,
  callerKey,
  type ServiceAccountCaller,
} from '../callers/caller.ts';
import { TokenBuckets } from '../platform/limits/token-bucket.ts';
import { type Logger, withoutRepeatLimit } from '../platform/log/logger.ts';
import { within } from '../platform/time/async.ts';
import type { Clock } from '../platform/time/clock.ts';
import { REFUSALS } from '../token/broker-protocol.ts';
import type { Grants } from './brokered-tokens.ts';
import {
  type Address,
  type BrokerResponse,
  readTokenRequest,
  refusal,
  type TokenRequest,
} from './messages.ts';
import { type BrokerCredential, type BrokeredCredentials, isSame } from './secret-volume.ts';

/**
 * Never throws or rejects. Answers within `DECISION_MS` of the request's head.
 * @param beganAtMs when the head had come, by the monotonic clock.
 * @param from the caller's address.
 */
export type TokenEndpoint = (
  address: Address,
  body: Uint8Array,
  beganAtMs: number,
  from: string,
) => BrokerResponse | Promise<BrokerResponse>;

/** Sidecars wait 10 s. */
const DECISION_MS = 8000;

/** For one pod with 32 credentials: three requests each at the start, then one every 2.5 to 5 s without a token. */
export const OF_ONE_CALLER = { burst: 96, perSecond: 10 };

const MAX_CALLERS = 20_000;

interface TokenEndpointOptions {
  /** At once if the token is known. */
  readonly verify: (token: string, from: string) => AuthenticationResult | Promise<AuthenticationResult>;
  readonly credentials: BrokeredCredentials;
  readonly grants: Grants;
  readonly clock: Clock;
  readonly log: Logger;
}

const READ_SOON_MS = 1000;

export function createTokenEndpoint(options: TokenEndpointOptions): TokenEndpoint {
  const { verify, credentials, grants, clock, log } = options;
  const rates = new TokenBuckets(OF_ONE_CALLER, MAX_CALLERS);
  const wholeLog = withoutRepeatLimit(log);

  function decide(
    request: TokenRequest,
    caller: ServiceAccountCaller,
  ): BrokerResponse | Promise<BrokerResponse> {
    const { namespace, serviceAccount } = caller;
    if (
      request.clientId !== undefined &&
      request.clientId !== `system:serviceaccount:${namespace}:${serviceAccount}`
    ) {
      return refusal('invalid_client', 'client_id is another than the subject of client_assertion');
    }
    if (credentials.unread() !== undefined) {
      return refusal('temporarily_unavailable', 'the profiles are being read', READ_SOON_MS);
    }
    const credential = credentials.find(request.profile, request.credential, caller);
    if (credential === undefined) {
      return notTheirs();
    }
    if (request.scope !== undefined && request.scope !== credential.config.scope) {
      return refusal('invalid_scope', 'the profile says what the token is for');
    }
    const { refusedTokenHash: hash } = request;
    const answer = grants.answer(credential, hash === undefined ? undefined : { hash, namespace });
    return answer instanceof Promise ? ifStillTheirs(request, caller, credential, answer) : answer;
  }

  /** Profiles may change while a grant is waited for. */
  async function ifStillTheirs(
    { profile, credential }: TokenRequest,
    caller: ServiceAccountCaller,
    asked: BrokerCredential,
    waited: Promise<BrokerResponse>,
  ): Promise<BrokerResponse> {
    const answer = await waited;
    const now = credentials.find(profile, credential, caller);
    if (now === undefined) return notTheirs();
    if (answer.kind === 'given' && !isSame(asked, now)) {
      return refusal('temporarily_unavailable', 'the profile has changed', READ_SOON_MS);
    }
    return answer;
  }

  /** What is begun goes on after the deadline, for the next request. */
  async function byDeadline<T>(
    work: Promise<T>,
    beganAtMs: number,
    { profile, credential }: Pick<Address, 'profile' | 'credential'>,
  ): Promise<T | 'late'> {
    const leftMs = Math.max(0, beganAtMs + DECISION_MS - clock.monotonicMs());
    const result = await within(leftMs, work, clock);
    if (result === 'late') {
      work.catch((error: unknown) =>
        log.error({ err: error, profile, credential }, 'what a request had begun failed after its answer'),
      );
    }
    return result;
  }

  /** Beyond a caller's rate, and while no token can be had, the logger counts repeats. */
  function audit(
    address: Address | TokenRequest,
    by: Proved | undefined,
    answer: BrokerResponse,
    reason?: string,
  ): void {
    const who =
      by === undefined
        ? {}
        : {
            namespace: by.caller.namespace,
            serviceAccount: by.caller.serviceAccount,
            pod: by.caller.pod?.name,
          };
    const reports = 'refusedTokenHash' in address && address.refusedTokenHash !== undefined;
    const asked = {
      ...who,
      profile: address.profile,
      credential: address.credential,
      ...(reports ? { reportsRefusedToken: true } : {}),
    };
    if (answer.kind === 'given') {
      log.info({ ...asked, result: 'given', expiresIn: answer.expiresInSeconds }, 'token given');
    } else {
      const why = reason ?? answer.description;
      const isVerdict = answer.code !== 'temporarily_unavailable';
      const lines = isVerdict && by?.isWithinRate === true ? wholeLog : log;
      lines.warn({ ...asked, result: answer.code, reason: why }, 'token not given');
    }
  }

  /** Also counts the request against the caller's rate. */
  function proved(caller: Caller | undefined): Proved | undefined {
    if (caller?.kind !== 'service_account') return undefined;
    return { caller, isWithinRate: rates.take(callerKey(caller), clock.monotonicMs()) };
  }

  function answerFor(
    request: TokenRequest,
    by: Proved | undefined,
    beganAtMs: number,
  ): BrokerResponse | Promise<BrokerResponse> {
    if (by === undefined) return refusal('invalid_client', 'the caller is no service account');
    if (!by.isWithinRate) {
      return refusal('too_many_requests', 'ask once in the life of a token', READ_SOON_MS);
    }
    const answer = decide(request, by.caller);
    if (!(answer instanceof Promise)) return answer;
    return byDeadline(answer, beganAtMs, request).then((made) => (made === 'late' ? late() : made));
  }

  function judge(
    request: TokenRequest,
    verdict: AuthenticationResult | 'late',
    beganAtMs: number,
  ): Decision | Promise<Decision> {
    if (verdict === 'late') return { answer: late() };
    const by = proved(verdict.caller);
    if (verdict.kind === 'refused') {
      const answer = refusal('invalid_client', REFUSALS.assertionNotTaken);
      return { by, answer, reason: verdict.reason };
    }
    if (verdict.kind === 'unavailable') {
      const description = 'the service account token cannot be verified now';
      return { by, answer: refusal('temporarily_unavailable', description, verdict.retryAfterMs) };
    }
    const broken = (error: unknown): Decision => ({ by, answer: failed(request, error) });
    try {
      const answer = answerFor(request, by, beganAtMs);
      if (!(answer instanceof Promise)) return { by, answer };
      return answer.then((made) => ({ by, answer: made }), broken);
    } catch (error) {
      return broken(error);
    }
  }

  function failed(address: Pick<Address, 'profile' | 'credential'>, error: unknown): BrokerResponse {
    log.error({ err: error, profile: address.profile, credential: address.credential }, 'a request failed');
    return refusal('server_error', 'the broker failed; its log says why');
  }

  return (address, body, beganAtMs, from) => {
    let asked: Address | TokenRequest = address;
    const tell = ({ by, answer, reason }: Decision): BrokerResponse => {
      audit(asked, by, answer, reason);
      return answer;
    };
    const broken = (error: unknown): BrokerResponse => tell({ answer: failed(address, error) });
    try {
      const request = readTokenRequest(address, body);
      if (request.kind === 'refused') return tell({ answer: request });
      asked = request;
      const verdict = verify(request.assertion, from);
      const decision =
        verdict instanceof Promise
          ? byDeadline(verdict, beganAtMs, request).then((made) => judge(request, made, beganAtMs))
          : judge(request, verdict, beganAtMs);
      return decision instanceof Promise ? decision.then(tell, broken) : tell(decision);
    } catch (error) {
      return broken(error);
    }
  };
}

interface Decision {
  readonly by?: Proved | undefined;
  readonly answer: BrokerResponse;
  readonly reason?: string;
}

interface Proved {
  readonly caller: ServiceAccountCaller;
  readonly isWithinRate: boolean;
}

function late(): BrokerResponse {
  return refusal('temporarily_unavailable', 'there was no token in time', READ_SOON_MS);
}

function notTheirs(): BrokerResponse {
  return refusal('unauthorized_client', REFUSALS.noSuchCredential);
}
