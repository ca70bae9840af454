import { instantAndDistance } from '../../platform/time/words.ts';
import { REFUSED_TOKEN_ADVICE } from '../../proxy/proxy-error.ts';
import { type Condition, sentenceOf } from '../../token/condition.ts';
import type { Level, Problem, RouteState, Verdict } from './report.ts';
import { type LastMinute, routeFault } from './traffic-history.ts';

interface Findings {
  readonly nowMs: number;
  readonly draining: boolean;
  readonly credentials: readonly FoundCredential[];
  readonly routes: readonly FoundRoute[];
  /** For example a configuration that could not be loaded. */
  readonly others: readonly Problem[];
}

export interface FoundCredential {
  readonly name: string;
  readonly exchanges: boolean;
  /** A request would get a token now. */
  readonly serves: boolean;
  readonly condition: Condition;
}

interface FoundRoute {
  readonly name: string;
  readonly credential: string;
  readonly whenTokenUnavailable: 'fail' | 'passthrough';
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
  return { level: worst.level, sentence: `${textOf(worst, found.nowMs)}${more}`, problems };
}

export function levelOf({ problems }: Verdict, kind: 'credential' | 'route', name: string): Level {
  const own = problems.filter(({ about }) => about?.kind === kind && about.name === name);
  return own.some(({ level }) => level === 'failing') ? 'failing' : own.length > 0 ? 'warning' : 'ok';
}

function textOf(problem: Problem, nowMs: number): string {
  const { since, next, nextAt } = problem;
  const sinceMs = since === undefined ? undefined : Date.parse(since);
  const first = capital(sentenceOf({ ...problem, sinceMs }, nowMs));
  if (next === undefined) return `${first}.`;
  return `${first}. ${capital(next)}${nextAt === undefined ? '' : ` at ${instantAndDistance(Date.parse(nextAt), nowMs)}`}.`;
}

/** A URL stays as it is. */
export function capital(text: string): string {
  return /^https?:/.test(text) ? text : `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

const DRAINING: Problem = {
  level: 'warning',
  what: 'the sidecar drains',
  next: 'it serves what is in flight, and ends',
};

function problemOf({ name, condition }: FoundCredential): Problem[] {
  const { state: _, level, sinceMs, nextAtMs, ...words } = condition;
  if (level === 'ok') return [];
  return [
    {
      ...words,
      level,
      about: { kind: 'credential', name },
      ...(sinceMs === undefined ? {} : { since: toIso(sinceMs) }),
      ...(nextAtMs === undefined ? {} : { nextAt: toIso(nextAtMs) }),
    },
  ];
}

/** Without a token from its credential, a route's own requests say nothing of it. */
export function routeStanding(
  { name, credential, whenTokenUnavailable, lastMinute }: FoundRoute,
  { verdict, credentials }: { readonly verdict: Verdict; readonly credentials: readonly FoundCredential[] },
): { readonly level: Level; readonly state: RouteState } {
  const own = credentials.find((each) => each.name === credential);
  const fault = lastMinute && routeFault(lastMinute);
  const level = levelOf(verdict, 'route', name);
  if (own === undefined || own.serves) return { level, state: fault?.kind ?? 'ready' };
  const isPassed = whenTokenUnavailable === 'passthrough';
  if (isPassed) return { level: level === 'ok' ? 'warning' : level, state: 'without_token' };
  return { level: level === 'ok' ? own.condition.level : level, state: 'waits' };
}

function problemOfRoute({ name, lastMinute }: FoundRoute): Problem[] {
  const fault = lastMinute && routeFault(lastMinute);
  if (lastMinute === undefined || fault === undefined) return [];
  const { requests, refusedTokens, failingSinceMs } = lastMinute;
  const about = { kind: 'route', name } as const;
  const since = failingSinceMs === undefined ? {} : { since: toIso(failingSinceMs) };
  switch (fault.kind) {
    case 'fails': {
      const by = fault.codes.map(([code, count]) => `${code} ${count}`).join(', ');
      const [[code]] = fault.codes as [readonly [string, number]];
      return [
        {
          level: 'failing',
          about,
          what: `route ${name} has failed`,
          ...since,
          reason: `${fault.failed} of ${requests} requests of the last minute failed (${by})`,
          advice: `run token-sidecar explain ${code}, which says what to do`,
          runbook: 'TokenSidecarProxyErrors',
        },
      ];
    }
    case 'refuses_tokens':
      return [
        {
          level: 'warning',
          about,
          what: `the upstream of route ${name} has refused tokens`,
          ...since,
          reason: `it answered a token with 401 ${refusedTokens} times in ${requests} requests of the last minute`,
          advice: REFUSED_TOKEN_ADVICE,
          runbook: 'TokenSidecarUpstreamUnauthorized',
        },
      ];
    case 'answers_errors':
      return [
        {
          level: 'warning',
          about,
          what: `the upstream of route ${name} has answered with errors`,
          ...since,
          reason: `${fault.answered} of ${requests} answers of the last minute had a status of 500 or more`,
          advice: 'look at the upstream',
          next: 'its answers are passed on as they are',
        },
      ];
  }
}

function allIsWell({ credentials }: Findings): string {
  const [only] = credentials;
  if (only !== undefined && credentials.length === 1) return `All is well: ${only.condition.what}.`;
  const or = credentials.some(({ exchanges }) => exchanges) ? ' or exchanges those of requests' : '';
  return `All is well: each of ${credentials.length} credentials has a token${or}.`;
}

function toIso(atMs: number): string {
  return new Date(atMs).toISOString();
}
