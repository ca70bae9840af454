/** The parts of the page, each a function of what it shows. Failures come first. */

import { LOG_LEVELS } from '../../../platform/log/logger.ts';
import type {
  CredentialReport,
  ForwardProxyReport,
  HostReport,
  Level,
  Problem,
  RecentTraffic,
  RouteReport,
  StandingReport,
  StatusReport,
  WayOfHosts,
} from '../report.ts';
import { capital } from '../verdict.ts';
import { absolute, type Html, html, lasting, type Part, sparkline, time, timeline } from './html.ts';

const DOCS = 'https://github.com/token-sidecar/token-sidecar/blob/main/docs';

const LEVELS: readonly Level[] = ['failing', 'warning', 'ok'];
/** Besides its colour each level has a sign and a word. */
const SIGNS: Readonly<Record<Level, string>> = {
  failing: 'M3 3l10 10M13 3L3 13',
  warning: 'M8 3v6M8 12v1',
  ok: 'M3 8l4 4 6-8',
};
const WORDS: Readonly<Record<Level, string>> = { failing: 'fails', warning: 'needs a look', ok: 'is well' };

function sign(level: Level): Html {
  return html`<svg class="sign ${level}" viewBox="0 0 16 16" aria-hidden="true"><path d="${SIGNS[level]}"/></svg>`;
}

export function verdictSection({ verdict, at }: StatusReport): Html {
  const [worst, ...others] = verdict.problems;
  const rest =
    others.length === 0
      ? undefined
      : html`<ul>${others.map((each) => html`<li>${problem(each, at)}</li>`)}</ul>`;
  const first =
    worst === undefined
      ? html`<p class="first">${sign('ok')} ${verdict.sentence}</p>`
      : html`<p class="first">${sign(worst.level)} ${headline(worst, at)}</p>${reason(worst, at)}`;
  return html`<section id="verdict" class="${verdict.level}" aria-label="Verdict">${first}${rest}</section>`;
}

function headline({ what, since }: Problem, now: string): Html {
  return html`${capital(what)}${since === undefined ? undefined : [html` `, lasting(since, now)]}.`;
}

function reason({ why, next, nextAt, runbook }: Problem, now: string): Html {
  const when = nextAt === undefined ? undefined : [html` `, time(nextAt, now)];
  const link =
    runbook === undefined
      ? undefined
      : html` <a href="${DOCS}/runbooks/${runbook}.md">Runbook ${runbook}</a>`;
  return html`${why === undefined ? undefined : html`<p>${why}</p>`}<p>${capital(next)}${when}.${link}</p>`;
}

function problem(each: Problem, now: string): Html {
  return html`${sign(each.level)} ${headline(each, now)}${reason(each, now)}`;
}

export function credentialsSection({ credentials, at }: StatusReport, mayChange: boolean): Html {
  const cards = firstOf(credentials, (each) => credentialCard(each, at, mayChange));
  return html`<section aria-labelledby="credentials"><h2 id="credentials">Credentials</h2>${cards}</section>`;
}

function credentialCard(credential: CredentialReport, now: string, mayChange: boolean): Html {
  const { name, level, tokens, required, lastFailure, mountedCredentials } = credential;
  const facts: readonly (readonly [string, Part] | undefined)[] = [
    credential.expiresAt === undefined ? undefined : ['Token ends', time(credential.expiresAt, now)],
    tokens === 'exchanged' ? ['Tokens', 'none is held: that of each request is exchanged'] : undefined,
    credential.grantInFlight
      ? [tokens === 'held' ? 'Next grant' : 'Exchanges', 'being asked for now']
      : credential.nextGrantAt === undefined
        ? undefined
        : ['Next grant', [time(credential.nextGrantAt, now), html` (${credential.nextGrantReason})`]],
    credential.tokenUrl === undefined ? undefined : ['Token endpoint', credential.tokenUrl],
    credential.issuerUrl === undefined ? undefined : ['Issuer', credential.issuerUrl],
    ['Mounted Secret', `${mountedCredentials.state}, changes seen by ${mountedCredentials.watchedBy}`],
    credential.consecutiveFailures === 0 ? undefined : ['Failures in a row', credential.consecutiveFailures],
  ];
  const failure =
    lastFailure === undefined
      ? undefined
      : html`<p>Last failure ${time(lastFailure.at, now)}: ${lastFailure.result}, ${lastFailure.detail}</p>`;
  const wish =
    mayChange && tokens === 'held'
      ? html`<form method="post" action="api/renew?credential=${encodeURIComponent(name)}"><button>Ask for a new token now<span class="out"> for credential ${name}</span></button></form>`
      : undefined;
  const state = `${standing(credential)}${required ? '' : ', which the pod does not wait for'}`;
  return html`<article class="${level}" id="credential-${name}"><h3>${name} <b>${sign(level)} ${state}</b></h3>${list(facts)}${failure}${timeline(credential.timeline, now)}${grants(credential, now)}${wish}</article>`;
}

function standing({ tokens, ready, consecutiveFailures }: CredentialReport): string {
  if (tokens === 'held') return ready ? 'has a token' : 'has no token';
  return ready && consecutiveFailures === 0 ? 'exchanges tokens' : 'fails to exchange tokens';
}

function grants({ name, history }: CredentialReport, now: string): Html | undefined {
  if (history.length === 0) return undefined;
  const rows = [...history]
    .reverse()
    .map(
      ({ at, reason: why, result, durationMs }) =>
        html`<tr><td>${time(at, now)}</td><td>${why}</td><td class="${result === 'success' ? 'ok' : 'failing'}">${result}</td><td>${durationMs} ms</td></tr>`,
    );
  return html`<details id="grants-${name}"><summary>Latest grants of ${name}</summary><table><thead><tr><th scope="col">When</th><th scope="col">Why</th><th scope="col">Result</th><th scope="col">Took</th></tr></thead><tbody>${rows}</tbody></table></details>`;
}

export function routesSection({ routes, forwardProxy, at }: StatusReport): Html {
  const cards = firstOf(routes, (route) => routeCard(route, at));
  const none = html`<p>No routes${forwardProxy === undefined ? '' : ': tokens go to the hosts below'}.</p>`;
  return html`<section aria-labelledby="routes"><h2 id="routes">Routes</h2>${cards.length === 0 ? none : cards}</section>`;
}

function routeCard(route: RouteReport, now: string): Html {
  const { name, level, requests, recent } = route;
  const speaks =
    route.upstreamSpeaks === undefined || route.upstreamSpeaks === route.protocol
      ? ''
      : `, ${route.upstreamSpeaks} now`;
  const facts: readonly (readonly [string, Part] | undefined)[] = [
    ['Upstream', route.upstream],
    ['Protocol', `${route.protocol}${speaks}`],
    ['Credential', route.credential],
    route.egressProxy === undefined ? undefined : ['Egress proxy', route.egressProxy],
    ['Requests since the start', requests.total],
    ['In flight', requests.inFlight],
    ['Errors since the start', requests.errors],
    requests.grpc.calls === 0
      ? undefined
      : ['gRPC calls', `${requests.grpc.calls}, ${requests.grpc.failures} not OK`],
  ];
  return html`<article class="${level}" id="route-${name}"><h3>${name} <b>${sign(level)} ${WORDS[level]}</b></h3>${list(facts)}${traffic(name, recent, now)}</article>`;
}

function traffic(name: string, recent: RecentTraffic | undefined, now: string): Html {
  if (recent === undefined) return html`<p class="dim">No requests in the last ten minutes.</p>`;
  const { requests, errors, intervalSeconds, statusClasses, errorsByCode } = recent;
  const rates = requests.map((count) => count / intervalSeconds);
  const rate = figure(rates.at(-1) ?? 0);
  const highest = figure(Math.max(0, ...rates));
  const failed = errors.reduce((sum, count) => sum + count, 0);
  const from = absolute(new Date(Date.parse(now) - requests.length * intervalSeconds * 1000).toISOString());
  const facts: readonly (readonly [string, Part] | undefined)[] = [
    [
      'Requests per second',
      [
        `${rate}, at most ${highest}`,
        sparkline(rates, `Requests per second of ${name} since ${from}: ${rate} now, ${highest} at most`),
      ],
    ],
    ['Errors', [`${failed}`, sparkline(errors, `Errors of ${name} since ${from}: ${failed}`, 'failing')]],
    [
      'p50',
      [millis(recent.p50), sparkline(recent.p50Ms, `Median duration of ${name}: ${millis(recent.p50)}`)],
    ],
    [
      'p99',
      [
        millis(recent.p99),
        sparkline(recent.p99Ms, `99th percentile of durations of ${name}: ${millis(recent.p99)}`),
      ],
    ],
    ['Answers', counts(statusClasses)],
    failed === 0 ? undefined : ['Errors by code', counts(errorsByCode)],
    recent.refusedTokens === 0 ? undefined : ['Tokens refused with 401', recent.refusedTokens],
  ];
  return list(facts);
}

const HEADINGS: Readonly<Record<WayOfHosts, string>> = {
  'forward proxy': 'Hosts of the forward proxy',
  capture: 'Captured hosts',
  redirection: 'Redirected hosts',
};
const OTHER_HOSTS: Readonly<Record<WayOfHosts, string>> = {
  'forward proxy': 'Hosts on no list',
  capture: 'Hosts that are not captured',
  redirection: 'Redirected hosts on no list',
};

/** One host may be listed in each of them. */
const IDS: Readonly<Record<WayOfHosts, string>> = {
  'forward proxy': 'forward',
  capture: 'capture',
  redirection: 'redirect',
};

export function forwardProxySection({ forwardProxy, at }: StatusReport): Html | undefined {
  if (forwardProxy === undefined) return undefined;
  const { ways, hosts, connect } = forwardProxy;
  const facts = list([
    connect === undefined ? undefined : ['CONNECT', connect],
    ...ways.map(({ way, otherHosts }) => [OTHER_HOSTS[way], otherHosts] as const),
  ]);
  const [only] = ways;
  const heading = only !== undefined && ways.length === 1 ? HEADINGS[only.way] : 'Listed hosts';
  return html`<section aria-labelledby="hosts"><h2 id="hosts">${heading}</h2>${facts}${firstOf(hosts, (host) => hostCard(host, at))}${refusals(forwardProxy, at)}</section>`;
}

function hostCard({ host, level, way, credential, clear, requests, recent }: HostReport, now: string): Html {
  const facts = list([
    ['Way', `${way}${clear ? ', in clear text where asked so' : ', over TLS'}`],
    ['Credential', credential],
    ['Requests since the start', requests.total],
    ['Errors since the start', requests.errors],
  ]);
  return html`<article class="${level}" id="${IDS[way]}-${host}"><h3>${host} <b>${sign(level)} ${WORDS[level]}</b></h3>${facts}${traffic(host, recent, now)}</article>`;
}

function refusals({ refusals: total, refusedHosts }: ForwardProxyReport, now: string): Html {
  if (refusedHosts.length === 0) return html`<p>No host has been refused (${total} requests in all).</p>`;
  const items = refusedHosts.map(
    ({ host, times, lastAt }) =>
      html`<li>${host}: ${times === 1 ? 'once' : `${times} times`}, last ${time(lastAt, now)}</li>`,
  );
  return html`<h3>Refused</h3><p>${total} requests since the start. The latest hosts:</p><ul>${items}</ul>`;
}

export function programSection(status: StatusReport, mayChange: boolean): Html {
  const { memory, logLevel, at } = status;
  const mebibytes = (bytes: number | undefined) =>
    bytes === undefined ? 'unknown' : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  const facts = list([
    ['Version', `${status.version} (${status.revision}), Node ${status.node}`],
    ['Started', time(status.startedAt, at)],
    ['Own memory', `${mebibytes(memory.anonymousBytes)}, ${mebibytes(memory.residentBytes)} resident`],
    ['Log level', logLevel],
  ]);
  const effective = JSON.stringify(status.effectiveConfiguration, null, 2);
  return html`<section aria-labelledby="program"><h2 id="program">Sidecar</h2>${facts}${fileState(status)}${mayChange ? logLevels(logLevel) : ONLY_LOOPBACK}<details id="configuration"><summary>Effective configuration, without secrets</summary><pre tabindex="0">${effective}</pre></details></section>`;
}

/** How the configuration relates to its file, and what is wrong with it. */
function fileState({ configuration, at }: StatusReport): Html | undefined {
  if (configuration === undefined) return undefined;
  const { file, generation, since } = configuration;
  const { sentence, detail } = standingOf(configuration);
  const shown = detail === '' ? undefined : html`<pre tabindex="0" id="reload">${detail}</pre>`;
  return html`<p>Configuration: generation ${generation} of ${file}, in use ${lasting(since, at)}. ${sentence}</p>${shown}`;
}

function standingOf(standing: StandingReport): { readonly sentence: string; readonly detail: string } {
  switch (standing.state) {
    case 'current':
      return { sentence: 'It is what the file says.', detail: '' };
    case 'waiting':
      return {
        sentence: 'The file says something else, which waits for tokens:',
        detail: standing.missing.join('\n'),
      };
    case 'refused':
      return {
        sentence: 'The file says something else, which was refused:',
        detail: standing.errors,
      };
  }
}

const ONLY_LOOPBACK = html`<p class="dim">To ask for a token or to change the log level, come by <code>kubectl port-forward</code>.</p>`;

/** Levels that change how much is logged, the quietest first; the omitted ones would hide errors. */
const OFFERED_LEVELS = LOG_LEVELS.filter((level) => level !== 'fatal' && level !== 'silent').toReversed();

function logLevels(current: string): Html {
  const buttons = OFFERED_LEVELS.map(
    (level) =>
      html`<button formaction="api/log-level?level=${level}" aria-pressed="${String(level === current)}">${level}</button>`,
  );
  return html`<form method="post" aria-label="Log level, until the next start"><span>Log level until the next start:</span>${buttons}</form>`;
}

export const LINKS = html`<nav aria-label="Links"><a href="metrics">Metrics</a><a href="api/status">Status as JSON</a><a href="readyz">readyz</a><a href="livez">livez</a><a href="startupz">startupz</a><a href="${DOCS}/runbooks/README.md">Runbooks</a><a href="${DOCS}/reference/status-page.md">About this page</a></nav>`;

/** A page with more of them would take too long to read, and to make. */
const MAX_CARDS = 50;

/** The worst first, as many as fit. */
function firstOf<T extends { readonly level: Level }>(all: readonly T[], card: (one: T) => Html): Html[] {
  const sorted = [...all].sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
  const cards = sorted.slice(0, MAX_CARDS).map(card);
  const left = all.length - cards.length;
  if (left === 0) return cards;
  return [
    ...cards,
    html`<p>${left} more are left out here: <a href="api/status">Status as JSON</a> has all.</p>`,
  ];
}

function list(facts: readonly (readonly [string, Part] | undefined)[]): Html {
  const shown = facts.filter((fact) => fact !== undefined);
  return html`<dl>${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function counts(found: Readonly<Record<string, number>>): string {
  const entries = Object.entries(found).sort((a, b) => b[1] - a[1]);
  return entries.length === 0 ? 'none' : entries.map(([name, count]) => `${name} ${count}`).join(', ');
}

function millis(ms: number | null): string {
  if (ms === null) return 'none';
  return ms < 1000 ? `${figure(ms)} ms` : `${figure(ms / 1000)} s`;
}

function figure(value: number): string {
  return value === 0 ? '0' : value < 10 ? value.toFixed(1) : String(Math.round(value));
}
