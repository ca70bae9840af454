/** From a request to a token: who asks, whether the profile is for them, and then the one token that everybody gets. */

import type { Caller, ServiceAccountCaller, Verdict } from '../callers/caller.ts';
import type { Clock } from '../clock.ts';
import type { Logger } from '../log/logger.ts';
import { type BrokerAnswer, refusal } from './broker-answer.ts';
import type { BrokeredCredentials } from './brokered-credential.ts';
import { createCallerRates } from './caller-rates.ts';
import type { Grants } from './grants.ts';
import { type Address, readTokenRequest, type TokenRequest } from './token-request.ts';

export type TokenEndpoint = (address: Address, body: Uint8Array) => Promise<BrokerAnswer>;

export interface TokenEndpointOptions {
  readonly verify: (token: string) => Promise<Verdict>;
  readonly credentials: BrokeredCredentials;
  readonly grants: Grants;
  readonly clock: Clock;
  readonly log: Logger;
}

/** While the profiles are being read. */
const READ_SOON_MS = 1000;

export function createTokenEndpoint(options: TokenEndpointOptions): TokenEndpoint {
  const { verify, credentials, grants, clock, log } = options;
  const rates = createCallerRates(clock);

  async function decide(request: TokenRequest, caller: ServiceAccountCaller): Promise<BrokerAnswer> {
    if (!rates.take(caller)) {
      return refusal('too_many_requests', 'ask once in the life of a token', READ_SOON_MS);
    }
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
    const answer = await grants.answer(credential);
    // Profiles may have changed while the grant was waited for.
    return credentials.find(request.profile, request.credential, caller) === undefined ? notTheirs() : answer;
  }

  /** Never holds a token; what the caller is called was signed by the cluster. */
  function audit(address: Address, caller: Caller | undefined, answer: BrokerAnswer, reason?: string): void {
    const who =
      caller?.kind === 'service_account'
        ? { namespace: caller.namespace, serviceAccount: caller.serviceAccount, pod: caller.pod?.name }
        : {};
    const asked = { ...who, profile: address.profile, credential: address.credential };
    if (answer.kind === 'given') {
      log.info({ ...asked, result: 'given', expiresIn: answer.expiresInSeconds }, 'token given');
    } else {
      const why = reason ?? answer.description;
      log.warn({ ...asked, result: answer.code, reason: why }, 'token not given');
    }
  }

  return async (address, body) => {
    const request = readTokenRequest(address, body);
    if (request.kind === 'refused') {
      audit(address, undefined, request);
      return request;
    }
    const verdict = await verify(request.assertion);
    switch (verdict.kind) {
      case 'refused': {
        const answer = refusal('invalid_client', 'the service account token is not taken');
        audit(address, undefined, answer, verdict.reason);
        return answer;
      }
      case 'unavailable': {
        const description = 'the service account token cannot be verified now';
        const answer = refusal('temporarily_unavailable', description, verdict.retryAfterMs);
        audit(address, undefined, answer);
        return answer;
      }
      case 'accepted': {
        const { caller } = verdict;
        const answer =
          caller.kind === 'service_account'
            ? await decide(request, caller)
            : refusal('invalid_client', 'the caller is no service account');
        audit(address, caller, answer);
        return answer;
      }
    }
  };
}

function notTheirs(): BrokerAnswer {
  return refusal('unauthorized_client', 'no profile gives this service account such a credential');
}
