/**
 * What is so with a credential, since when, why and what to do. Every view and the log take it from here: status page and API,
 * `/readyz`, `check --status`, the termination message.
 */

import type { CredentialSettings, ProviderAddress } from '../config/config.ts';
import { instant, span } from '../platform/time/words.ts';
import type { TokenSnapshot } from './grant-report.ts';
import { type NoToken, whyNoToken } from './why-no-token.ts';

export type CredentialState =
  | 'ready'
  | 'starting'
  | 'no_token'
  | 'not_renewed'
  | 'secret_rejected'
  | 'secret_unusable'
  | 'not_exchanged';

export interface Condition {
  readonly state: CredentialState;
  readonly level: 'ok' | 'warning' | 'failing';
  /** Without its ending, "since …": `credential crm has had no token`. */
  readonly what: string;
  /** Wall ms. Stays while the state lasts; undefined if all is well. */
  readonly sinceMs?: number | undefined;
  /** A clause. */
  readonly reason?: string | undefined;
  /** A clause. */
  readonly advice?: string | undefined;
  readonly code?: NoToken['code'];
  /** What becomes of requests and when, as a clause without its ending, "at …". */
  readonly next?: string;
  readonly nextAtMs?: number | undefined;
  /** The runbook's page name. */
  readonly runbook?: string;
}

type Source = Pick<CredentialSettings, 'directory' | 'scope'> & ProviderAddress;

/** @param nowMs wall time. */
export function credentialCondition(source: Source, token: TokenSnapshot, nowMs: number): Condition {
  const fails = !token.ready || token.consecutiveFailures > 0;
  if (token.tokens.kind === 'exchanged' && fails) return ofExchanges(source, token, nowMs);
  return token.ready ? ofHeldToken(source, token, nowMs) : ofMissingToken(source, token, nowMs);
}

function ofExchanges(source: Source, token: TokenSnapshot, nowMs: number): Condition {
  const { name, ready, required, tokens } = token;
  const isForAll = !ready || (tokens.kind === 'exchanged' && tokens.refusesAll);
  return {
    ...because(source, token, nowMs, ready ? 'TokenSidecarRefreshFailing' : 'TokenSidecarTokenUnavailable'),
    state: 'not_exchanged',
    level: required && isForAll ? 'failing' : 'warning',
    what: `credential ${name} has exchanged no token of a request`,
    sinceMs: ready ? token.failingSinceMs : token.openedAtMs,
    next: ready
      ? 'such requests get 503; the token of the next one is tried'
      : 'such requests get 503 until the mounted Secret can be used',
  };
}

function ofMissingToken(source: Source, token: TokenSnapshot, nowMs: number): Condition {
  const { name, required, openedAtMs, expiresAtMs, lastFailure, credentials } = token;
  const { runbook, ...why } = because(source, token, nowMs, 'TokenSidecarTokenUnavailable');
  const { next, nextAtMs } = nextGrant(token);
  if (!token.obtainedFirstToken && lastFailure === undefined && credentials.detail === undefined) {
    return {
      ...why,
      state: 'starting',
      level: 'warning',
      what: `credential ${name} has waited for its first token`,
      sinceMs: openedAtMs,
      next,
      nextAtMs,
    };
  }
  return {
    ...why,
    runbook,
    state: 'no_token',
    level: required ? 'failing' : 'warning',
    what: `credential ${name} has had no token`,
    sinceMs: Math.min(expiresAtMs ?? openedAtMs, nowMs),
    next: `requests that need it get 503; ${next}`,
    nextAtMs,
  };
}

function ofHeldToken(source: Source, token: TokenSnapshot, nowMs: number): Condition {
  const { name, lastFailure, failingSinceMs, credentials } = token;
  const inHand = { next: 'requests get the token in hand, which ends', nextAtMs: token.expiresAtMs };
  if (credentials.detail === undefined && rejectsClient(source, token)) {
    return {
      ...because(source, token, nowMs, 'TokenSidecarCredentialsRejected'),
      state: 'secret_rejected',
      level: 'warning',
      what: `the mounted Secret of credential ${name} has been rejected`,
      sinceMs: credentials.rejectedSinceMs ?? failingSinceMs,
      ...(credentials.previousServes
        ? { next: 'requests get tokens by the previous one, while the provider takes it' }
        : inHand),
    };
  }
  if (lastFailure !== undefined && token.consecutiveFailures > 0) {
    return {
      ...because(source, token, nowMs, 'TokenSidecarRefreshFailing'),
      state: 'not_renewed',
      level: 'warning',
      what: `credential ${name} has had no new token`,
      sinceMs: failingSinceMs,
      ...inHand,
    };
  }
  if (credentials.detail !== undefined) {
    return {
      state: 'secret_unusable',
      level: 'warning',
      what: `the mounted Secret of credential ${name} has been unusable`,
      sinceMs: credentials.unusableSinceMs,
      code: 'configuration',
      reason: credentials.detail,
      advice: `mend the Secret that is mounted at ${source.directory}`,
      next: 'requests get tokens by what was read before',
      runbook: 'TokenSidecarSecretUnusable',
    };
  }
  const what = token.tokens.kind === 'exchanged' ? 'exchanges the tokens of requests' : 'has a token';
  return { state: 'ready', level: 'ok', what: `credential ${name} ${what}` };
}

function rejectsClient(source: Source, { lastFailure, credentials }: TokenSnapshot): boolean {
  if (lastFailure?.result !== 'rejected') return false;
  // Whatever was refused, the previous Secret was not.
  return credentials.previousInUse || whyNoToken(source, { lastFailure }).clientRejected;
}

/** @param otherwise the runbook if none is closer to the cause. */
function because(
  source: Source,
  { ready, credentials, lastFailure, lastAnswerAtMs }: TokenSnapshot,
  nowMs: number,
  otherwise: string,
): Pick<Condition, 'code' | 'reason' | 'advice'> & { readonly runbook: string } {
  // While requests are served, an earlier Secret is in use.
  const unusable = ready ? undefined : credentials.detail;
  const { code, reason, advice } = whyNoToken(source, {
    unusable,
    lastFailure,
    clientKey: credentials.clientKey,
    lastAnswer: lastAnswerAtMs === undefined ? undefined : { atMs: lastAnswerAtMs, nowMs },
  });
  const ofFailure = lastFailure?.result === 'rejected' ? 'TokenSidecarCredentialsRejected' : otherwise;
  const runbook = unusable === undefined ? ofFailure : 'TokenSidecarSecretUnusable';
  return { code, reason, advice, runbook };
}

function nextGrant({ grantInFlight, renewalAtMs }: TokenSnapshot): {
  readonly next: string;
  readonly nextAtMs?: number;
} {
  if (grantInFlight) return { next: 'the sidecar is asking the provider now' };
  if (renewalAtMs === undefined)
    return { next: 'the sidecar asks again once the mounted Secret has changed' };
  return { next: 'the sidecar asks again', nextAtMs: renewalAtMs };
}

/** `credential crm has had no token since 2026-11-22 03:04:05 UTC (12 min): REASON; ADVICE` */
export function sentenceOf(
  { what, sinceMs, reason, advice }: Pick<Condition, 'what' | 'sinceMs' | 'reason' | 'advice'>,
  nowMs: number,
): string {
  const since =
    sinceMs === undefined ? '' : ` since ${instant(sinceMs)} (${span(Math.max(0, nowMs - sinceMs))})`;
  const why = [reason, advice].filter((clause) => clause !== undefined).join('; ');
  return `${what}${since}${why === '' ? '' : `: ${why}`}`;
}

/** Undefined if the credential has had a token, or is not required. */
export function whyNeverGranted(
  source: Source,
  token: TokenSnapshot,
  nowMs: number,
): { readonly code: NoToken['code']; readonly message: string } | undefined {
  if (token.obtainedFirstToken || !token.required) return undefined;
  const condition = credentialCondition(source, token, nowMs);
  return { code: condition.code ?? 'provider_unavailable', message: sentenceOf(condition, nowMs) };
}
