import type { CredentialReport, Level, Problem, Verdict } from './report.ts';
import { type LastMinute, routeFault } from './traffic-history.ts';

interface Findings {
  readonly draining: boolean;
  readonly credentials: readonly FoundCredential[];
  readonly routes: readonly FoundRoute[];
  /** For example a configuration that could not be loaded. */
  readonly others: readonly Problem[];
}

export type FoundCredential = Omit<CredentialReport, 'level'> & {
  readonly obtainedFirstToken: boolean;
  /** Exchanged tokens: none would be given now. */
  readonly refusesAll: boolean;
  /** And what to do; absent if nothing failed. */
  readonly why: string | undefined;
};

interface FoundRoute {
  readonly name: string;
  readonly lastMinute: LastMinute | undefined;
}

const ORDER: Readonly<Record<Level, number>> = { failing: 0, warning: 1, ok: 2 };

export function judge(found: Findings): Verdict {
  const problems = [
    ...found.others,
    ...found.credentials.flatMap(problemOf),
    ...found.routes.flatMap(problemOfRoute),
    ...(found.draining ? [DRAINING] : []),
  ].sort((a, b) => ORDER[a.level] - ORDER[b.level]);
  const [worst] = problems;
  if (worst === undefined) return { level: 'ok', sentence: allIsWell(found), problems };
  const more =
    problems.length === 1
      ? ''
      : ` There ${problems.length === 2 ? 'is' : 'are'} ${problems.length - 1} more.`;
  return { level: worst.level, sentence: `${sentenceOf(worst)}${more}`, problems };
}

export function levelOf({ problems }: Verdict, kind: 'credential' | 'route', name: string): Level {
  const own = problems.filter(({ about }) => about?.kind === kind && about.name === name);
  return own.some(({ level }) => level === 'failing') ? 'failing' : own.length > 0 ? 'warning' : 'ok';
}

/** The page makes its instants relative. */
function sentenceOf({ what, since, why, next, nextAt }: Problem): string {
  const beginning = `${capital(what)}${since === undefined ? '' : ` since ${since}`}.`;
  return [
    beginning,
    ...(why === undefined ? [] : [why]),
    `${capital(next)}${nextAt === undefined ? '' : ` at ${nextAt}`}.`,
  ].join(' ');
}

export function capital(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

const DRAINING: Problem = {
  level: 'warning',
  what: 'the sidecar drains',
  next: 'it serves what is in flight, and ends',
};

function problemOf(found: FoundCredential): Problem[] {
  const { name, ready, required, consecutiveFailures, mountedCredentials } = found;
  const about = { kind: 'credential', name } as const;
  const next = nextGrant(found);
  const why = found.why === undefined ? {} : { why: found.why };
  if (found.tokens === 'exchanged' && (!ready || consecutiveFailures > 0)) {
    return [{ ...exchangeFails(found), about, ...why }];
  }
  if (!ready) {
    if (!found.obtainedFirstToken && consecutiveFailures === 0 && mountedCredentials.detail === undefined) {
      return [
        {
          level: 'warning',
          about,
          what: `credential ${name} has waited for its first token`,
          since: found.openedAt,
          ...next,
        },
      ];
    }
    return [
      {
        level: required ? 'failing' : 'warning',
        about,
        what: `credential ${name} has had no token`,
        since: found.expiresAt ?? found.openedAt,
        ...why,
        ...next,
        next: `requests that need it get 503; ${next.next}`,
        runbook: runbookOf(found, 'TokenSidecarTokenUnavailable'),
      },
    ];
  }
  if (consecutiveFailures > 0) {
    const until = found.expiresAt === undefined ? {} : { nextAt: found.expiresAt };
    return [
      {
        level: 'warning',
        about,
        what: `credential ${name} has had no new token`,
        ...(found.failingSince === undefined ? {} : { since: found.failingSince }),
        ...why,
        next: 'requests get the token in hand, which ends',
        ...until,
        runbook: runbookOf(found, 'TokenSidecarRefreshFailing'),
      },
    ];
  }
  if (mountedCredentials.previousInUse) {
    return [
      {
        level: 'warning',
        about,
        what: `the newest client secret of credential ${name} has been rejected`,
        ...(mountedCredentials.previousInUseSince === undefined
          ? {}
          : { since: mountedCredentials.previousInUseSince }),
        ...why,
        ...next,
        next: `the one before it is in use; ${next.next}`,
        runbook: 'TokenSidecarCredentialsRejected',
      },
    ];
  }
  if (mountedCredentials.detail === undefined) return [];
  return [
    {
      level: 'warning',
      about,
      what: `the mounted credentials of ${name} cannot be used: ${mountedCredentials.detail}`,
      ...(mountedCredentials.unusableSince === undefined ? {} : { since: mountedCredentials.unusableSince }),
      next: 'those that were read before stay in use',
      runbook: 'TokenSidecarSecretUnusable',
    },
  ];
}

function exchangeFails({
  name,
  ready,
  required,
  refusesAll,
  ...found
}: FoundCredential): Omit<Problem, 'about' | 'why'> {
  const level = required && (!ready || refusesAll) ? 'failing' : 'warning';
  const since = ready ? found.failingSince : found.openedAt;
  const next = ready
    ? 'such requests get 503; the token of the next one is tried'
    : 'such requests get 503 until the mounted Secret can be used';
  return {
    level,
    what: `credential ${name} has exchanged no token of a request`,
    ...(since === undefined ? {} : { since }),
    next,
    runbook: runbookOf(found, ready ? 'TokenSidecarRefreshFailing' : 'TokenSidecarTokenUnavailable'),
  };
}

/** The page closest to the cause. */
function runbookOf(
  { mountedCredentials, lastFailure }: Pick<FoundCredential, 'mountedCredentials' | 'lastFailure'>,
  otherwise: string,
): string {
  if (mountedCredentials.detail !== undefined) return 'TokenSidecarSecretUnusable';
  return lastFailure?.result === 'rejected' ? 'TokenSidecarCredentialsRejected' : otherwise;
}

function nextGrant({ grantInFlight, nextGrantAt }: FoundCredential): Pick<Problem, 'next' | 'nextAt'> {
  if (grantInFlight) return { next: 'the sidecar is asking the provider now' };
  if (nextGrantAt === undefined)
    return { next: 'the sidecar asks again once the mounted Secret has changed' };
  return { next: 'the sidecar asks again', nextAt: nextGrantAt };
}

function problemOfRoute({ name, lastMinute }: FoundRoute): Problem[] {
  const fault = lastMinute && routeFault(lastMinute);
  if (lastMinute === undefined || fault === undefined) return [];
  const { requests, refusedTokens, failingSinceMs } = lastMinute;
  const about = { kind: 'route', name } as const;
  const since = failingSinceMs === undefined ? {} : { since: new Date(failingSinceMs).toISOString() };
  const next = 'the next requests are tried like these';
  switch (fault.kind) {
    case 'fails': {
      const by = fault.codes.map(([code, count]) => `${code} ${count}`).join(', ');
      const why = `${fault.failed} of ${requests} requests of the last minute failed (${by}).`;
      const what = `route ${name} has failed`;
      return [{ level: 'failing', about, what, ...since, why, next, runbook: 'TokenSidecarProxyErrors' }];
    }
    case 'refuses_tokens': {
      const why = `It answered ${refusedTokens} of ${requests} requests of the last minute with 401.`;
      const what = `the upstream of route ${name} has refused tokens`;
      return [
        { level: 'warning', about, what, ...since, why, next, runbook: 'TokenSidecarUpstreamUnauthorized' },
      ];
    }
    case 'answers_errors': {
      const why = `${fault.answered} of ${requests} answers of the last minute had a status of 500 or more.`;
      const what = `the upstream of route ${name} has answered with errors`;
      return [{ level: 'warning', about, what, ...since, why, next: 'they are passed on as they are' }];
    }
  }
}

function allIsWell({ credentials }: Findings): string {
  const [only] = credentials;
  const exchanging = credentials.filter(({ tokens }) => tokens === 'exchanged').length;
  if (only !== undefined && credentials.length === 1) {
    return `All is well: credential ${only.name} ${exchanging === 1 ? 'exchanges the tokens of requests' : 'has a token'}.`;
  }
  const or = exchanging === 0 ? '' : ' or exchanges those of requests';
  return `All is well: each of ${credentials.length} credentials has a token${or}.`;
}
