/**
 * The one operation, from a request to its answer, without sockets. The order of the checks is part of the interface,
 * documented in docs/reference/issuer.md: path, method, ambiguous head, client, media type, form, grant.
 */

import { FormFault, parseForm } from '../platform/form.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { CallerVerification } from './client-authentication.ts';
import { accessTokenClaims, decideGrant, issuedToken, readGrantRequest, signAccessToken } from './grant.ts';
import type { KeyRing } from './keys.ts';
import type { IssuerMetrics, TokenResult } from './metrics.ts';
import { describeRefusal, Refusal, type TokenAnswer } from './refusal.ts';

/** A request as received, with its body. */
export interface TokenMessage {
  readonly method: string;
  /** Request target as on the request line. */
  readonly target: string;
  /** Every value of a field, in order; names in lower case. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
  readonly body: Uint8Array | 'too_large';
  /** IP address of the caller. */
  readonly address: string;
}

interface TokenServiceOptions {
  /** The served path. */
  readonly path: string;
  /** Named in the challenge of a 401. */
  readonly realm: string;
  /** The `iss` claim, and the `aud` of clients without one. */
  readonly issuer: string;
  readonly authenticate: CallerVerification;
  readonly keys: KeyRing;
  readonly tokenLifetimeSeconds: number;
  readonly maxBodyBytes: number;
  readonly metrics: IssuerMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Makes a `jti`. */
  readonly tokenId: () => string;
}

/** Never rejects: unforeseen errors are answered 500 and logged. */
export type TokenService = (message: TokenMessage) => Promise<TokenAnswer>;

/** How a request ended, and its client as far as it may be logged. */
interface Verdict {
  readonly result: TokenResult;
  readonly answer: TokenAnswer;
  readonly client?: string;
  /** The refusal's reason. */
  readonly reason?: string;
}

const NOT_FOUND = elsewhere('not_found', 404, 'there is only the token endpoint');
const METHOD_NOT_ALLOWED = elsewhere('method_not_allowed', 405, 'the token endpoint takes POST alone', {
  Allow: 'POST',
});

export function createTokenService(options: TokenServiceOptions): TokenService {
  const { clock, log, metrics } = options;
  let floodLoggedAtMs = Number.NEGATIVE_INFINITY;
  let unlogged = 0;

  /** A flood leaves one line a second, with the number of unlogged requests. */
  function logFlood(facts: object, nowMs: number): void {
    if (nowMs - floodLoggedAtMs < 1000) {
      unlogged++;
      return;
    }
    log.warn({ ...facts, unlogged }, 'token request refused');
    floodLoggedAtMs = nowMs;
    unlogged = 0;
  }

  return async (message) => {
    const startedAt = clock.now();
    const verdict = await judge(message, options).catch((error: unknown): Verdict => {
      log.error({ err: error }, 'token request failed');
      return refused(new Refusal('server_error', 'the token could not be issued'), options);
    });
    metrics.requested(verdict.result, (clock.now().monotonicMs - startedAt.monotonicMs) / 1000);
    const { result, client, reason, answer } = verdict;
    const facts = { result, status: answer.status, ...(client === undefined ? {} : { client }) };
    if (result === 'issued') log.debug(facts, 'token issued');
    else if (result === 'too_many_requests') logFlood({ ...facts, reason }, clock.monotonicMs());
    else log.warn({ ...facts, reason }, 'token request refused');
    return answer;
  };
}

async function judge(message: TokenMessage, options: TokenServiceOptions): Promise<Verdict> {
  if (pathOf(message.target) !== options.path) return NOT_FOUND;
  if (message.method !== 'POST') return METHOD_NOT_ALLOWED;
  const repeated = ['authorization', 'content-type'].find((name) => valuesOf(message, name).length > 1);
  if (repeated !== undefined) {
    return refused(new Refusal('invalid_request', `the ${repeated} header is given more than once`), options);
  }

  const { client, named } = await options.authenticate(
    valuesOf(message, 'authorization')[0],
    message.address,
  );
  if (client instanceof Refusal) return refused(client, options, named);

  const parameters = readForm(message, options.maxBodyBytes);
  if (parameters instanceof Refusal) return refused(parameters, options, named);
  const request = readGrantRequest(parameters, client.clientId);
  if (request instanceof Refusal) return refused(request, options, named);
  const grant = decideGrant(client, request, {
    audience: options.issuer,
    lifetimeSeconds: options.tokenLifetimeSeconds,
  });
  if (grant instanceof Refusal) return refused(grant, options, named);

  const key = options.keys.keyFor(grant.lifetimeSeconds);
  const facts = {
    issuer: options.issuer,
    issuedAtMs: options.clock.now().wallMs,
    tokenId: options.tokenId(),
  };
  const token = await signAccessToken(accessTokenClaims(grant, facts), key);
  return {
    result: 'issued',
    client: client.clientId,
    answer: { status: 200, headers: {}, body: JSON.stringify(issuedToken(token, grant)) },
  };
}

function readForm(message: TokenMessage, maxBodyBytes: number): ReadonlyMap<string, string> | Refusal {
  const mediaType = valuesOf(message, 'content-type')[0]?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType !== 'application/x-www-form-urlencoded') {
    return new Refusal('invalid_request', 'the media type must be application/x-www-form-urlencoded');
  }
  if (valuesOf(message, 'content-encoding').some((coding) => coding.toLowerCase() !== 'identity')) {
    return new Refusal('invalid_request', 'the form must come without a content coding');
  }
  if (message.body === 'too_large') {
    return new Refusal('invalid_request', `the form is larger than ${maxBodyBytes} bytes`);
  }
  const form = parseForm(message.body);
  return form instanceof FormFault ? new Refusal('invalid_request', form.description) : form;
}

/** Only the path: a query is allowed (RFC 6749 §3.2), but ignored. */
function pathOf(target: string): string {
  // The absolute form must be understood, though only proxies receive it (RFC 9112 §3.2.2).
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? '';
  return target.slice(origin.length).split('?', 1)[0] as string;
}

function valuesOf(message: TokenMessage, name: string): readonly string[] {
  return message.headers[name] ?? [];
}

function refused(refusal: Refusal, { realm }: TokenServiceOptions, client?: string): Verdict {
  return {
    result: refusal.code,
    answer: describeRefusal(refusal, realm),
    reason: refusal.description,
    ...(client === undefined ? {} : { client }),
  };
}

function elsewhere(
  result: TokenResult,
  status: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): Verdict {
  const body = JSON.stringify({ error: 'invalid_request', error_description: reason });
  return { result, reason, answer: { status, headers, body } };
}
