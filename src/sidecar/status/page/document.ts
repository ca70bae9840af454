import { LOG_LEVELS } from '../../../platform/log/logger.ts';
import { VERSION } from '../../../platform/version.ts';
import type { CredentialState } from '../../../token/condition.ts';
import type {
  CredentialReport,
  ForwardProxyReport,
  HostReport,
  Level,
  Problem,
  RecentTraffic,
  ReloadStateReport,
  RouteReport,
  RouteState,
  StatusReport,
  WayOfHosts,
} from '../report.ts';
import { capital } from '../verdict.ts';
import { absolute, Html, html, lasting, type Part, sparkline, time, timeline } from './html.ts';

/** For the title, which has no colour. */
const SIGNS: Readonly<Record<Level, string>> = { failing: '✖', warning: '▲', ok: '✔' };

const ICON_COLOURS: Readonly<Record<Level | 'stale', string>> = {
  ok: '1a7f37',
  warning: 'd4a72c',
  failing: 'cf222e',
  stale: '6e7681',
};

interface PageOptions {
  readonly script: string;
  /** Whether the reader may change something. */
  readonly mayChange: boolean;
}

/** The page works without its script, which only fetches newer versions. */
export function statusDocument(status: StatusReport, { script, mayChange }: PageOptions): string {
  const { verdict, pod, at } = status;
  const place = [pod.name, pod.namespace, pod.node].filter((part) => part !== undefined);
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${SIGNS[verdict.level]} ${place.join(' · ')} – token-sidecar</title>
<link id="icon" rel="icon" href="${icon(verdict.level)}" data-stale="${icon('stale')}">
<style>${new Html(STYLE)}</style></head>
<body><p id="stale" role="alert" hidden></p><p id="told" role="status" hidden></p><p id="announced" class="out" role="status"></p>
<header><h1>token-sidecar <small>${place.join(' · ')}</small></h1></header>
<main id="main" data-level="${verdict.level}">${verdictSection(status)}
<p class="dim">As of <time id="as-of" datetime="${at}">${absolute(at)}</time><span id="paused" hidden>, held while text is selected</span>.<noscript> This is a snapshot: load the page again for a newer one.</noscript></p>
${credentialsSection(status, mayChange)}${routesSection(status)}${forwardProxySection(status)}${programSection(status, mayChange)}</main>
<footer>${LINKS}</footer>
<script type="module">${new Html(script)}</script></body></html>
`;
  return page.text;
}

function icon(level: Level | 'stale'): string {
  return `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='7' fill='%23${ICON_COLOURS[level]}'/%3E%3C/svg%3E`;
}

/** Contrast is at least 4.5 to 1, light and dark (WCAG 2.2, 1.4.3). */
export const STYLE = `
:root{color-scheme:light dark;--bg:light-dark(#fff,#0d1117);--card:light-dark(#f6f8fa,#161b22);--fg:light-dark(#1f2328,#e6edf3);--dim:light-dark(#59636e,#9aa4af);--line:light-dark(#8c959f,#6e7681);--ok:light-dark(#116329,#56d364);--warning:light-dark(#7d4e00,#e3b341);--failing:light-dark(#a40e26,#ff7b72);--link:light-dark(#0550ae,#79c0ff)}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.1rem;margin:0}h2{font-size:1.05rem;margin:1.8rem 0 .5rem}h3{font-size:1rem;margin:0 0 .3rem}p{margin:.3rem 0}
a{color:var(--link)}a:focus-visible,button:focus-visible,summary:focus-visible,pre:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.dim,figcaption,dt{color:var(--dim)}small{font-size:.85rem;font-weight:400}
.ok{color:var(--ok)}.warning{color:var(--warning)}.failing{color:var(--failing)}
#verdict{border-left:.5rem solid;padding:.5rem .9rem;background:var(--card);margin:.8rem 0}#verdict p{color:var(--fg)}#verdict .first{font-size:1.25rem;line-height:1.35;font-weight:600}
article{background:var(--card);border-left:.25rem solid;padding:.6rem .9rem;margin:.6rem 0}article>*{color:var(--fg)}article h3 b{font-weight:400}
.ok b{color:var(--ok)}.warning b{color:var(--warning)}.failing b{color:var(--failing)}
dl{display:flex;flex-wrap:wrap;gap:.3rem 1.4rem;margin:.3rem 0}dt{font-size:.8rem}dd{margin:0;font-variant-numeric:tabular-nums}
svg{display:block;height:2rem;width:100%;overflow:visible}.spark{width:9rem;height:1.5rem}
svg.sign{display:inline-block;width:1em;height:1em;vertical-align:-.12em}.sign path{fill:none;stroke:currentColor;stroke-width:2.5}svg path{vector-effect:non-scaling-stroke}.spark path{fill:none;stroke:var(--link);stroke-width:1.5}.spark.failing path{stroke:var(--failing)}
.timeline{border-bottom:1px solid var(--line)}.timeline .ok{fill:var(--ok)}.timeline .failing{fill:var(--failing)}
figure{margin:.4rem 0}figcaption{display:flex;justify-content:space-between;font-size:.8rem}
ul{padding-left:1.2rem;margin:.3rem 0}table{border-collapse:collapse;font-size:.85rem}th,td{text-align:left;overflow-wrap:normal;padding:.1rem .8rem .1rem 0;vertical-align:top}
pre{overflow:auto;background:var(--card);padding:.6rem;font-size:.8rem;max-height:30rem}summary{cursor:pointer}details{margin:.4rem 0}
form{display:inline-flex;flex-wrap:wrap;gap:.4rem}button{font:inherit;min-height:2rem;padding:.1rem .8rem;border:1px solid var(--line);border-radius:.3rem;background:var(--bg);color:var(--fg);cursor:pointer}button[aria-pressed=true]{border-color:var(--fg);font-weight:700}
#stale,#told{position:sticky;top:0;padding:.5rem .9rem;font-weight:600;z-index:1}#stale{background:var(--failing);color:var(--bg)}#told{background:var(--fg);color:var(--bg)}#stale[hidden],#told[hidden]{display:none}
.stale main{filter:grayscale(1);border:3px dashed var(--failing);padding:0 .5rem}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem}.out{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
`.trim();

/** Of the version that runs. */
const DOCS = `https://github.com/token-sidecar/token-sidecar/blob/v${VERSION}/docs`;

const LEVELS: readonly Level[] = ['failing', 'warning', 'ok'];
const SIGN_PATHS: Readonly<Record<Level, string>> = {
  failing: 'M3 3l10 10M13 3L3 13',
  warning: 'M8 3v6M8 12v1',
  ok: 'M3 8l4 4 6-8',
};

const OF_CREDENTIALS: Readonly<Record<CredentialState, string>> = {
  ready: 'has a token',
  starting: 'waits for its first token',
  no_token: 'has no token',
  not_renewed: 'gets no new token',
  secret_rejected: 'has a token, its mounted Secret is rejected',
  secret_unusable: 'has a token, its mounted Secret cannot be used',
  not_exchanged: 'fails to exchange tokens',
};

const OF_ROUTES: Readonly<Record<RouteState, (credential: string) => string>> = {
  ready: () => 'is well',
  waits: (credential) => `waits for its credential ${credential}`,
  without_token: (credential) => `passes requests without the token of ${credential}`,
  fails: () => 'fails',
  refuses_tokens: () => 'refuses tokens',
  answers_errors: () => 'answers with errors',
};

/** By the label of metrics. */
const WHY_ASKED: Readonly<Record<string, string>> = {
  startup: 'the start',
  scheduled: 'renewal',
  rotation: 'the Secret changed',
  upstream_401: 'an upstream refused the token',
  retry: 'after a failure',
  subject: 'the token of a request',
  previous_credentials: 'by the previous Secret',
  manual: 'you asked',
};

const RESULTS: Readonly<Record<string, string>> = {
  success: 'token',
  rejected: 'rejected',
  unavailable: 'provider unavailable',
  invalid_response: 'unusable answer',
};

function sign(level: Level): Html {
  return html`<svg class="sign ${level}" viewBox="0 0 16 16" aria-hidden="true"><path d="${SIGN_PATHS[level]}"/></svg>`;
}

function verdictSection({ verdict, at }: StatusReport): Html {
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

function reason({ reason: why, advice, next, nextAt, runbook }: Problem, now: string): Html {
  const when = nextAt === undefined ? undefined : [html` `, time(nextAt, now)];
  const told = [why, advice].flatMap((clause) => (clause === undefined ? [] : [`${capital(clause)}.`]));
  const then = next === undefined ? undefined : html`${capital(next)}${when}.`;
  const link =
    runbook === undefined
      ? undefined
      : html` <a href="${DOCS}/runbooks/${runbook}.md">Runbook ${runbook}</a>`;
  return html`${told.length === 0 ? undefined : html`<p>${told.join(' ')}</p>`}<p>${then}${link}</p>`;
}

function problem(each: Problem, now: string): Html {
  return html`${sign(each.level)} ${headline(each, now)}${reason(each, now)}`;
}

function credentialsSection({ credentials, at }: StatusReport, mayChange: boolean): Html {
  const cards = firstOf(credentials, (each) => credentialCard(each, at, mayChange));
  return html`<section aria-labelledby="credentials"><h2 id="credentials">Credentials</h2>${cards}</section>`;
}

function credentialCard(credential: CredentialReport, now: string, mayChange: boolean): Html {
  const { name, level, state, tokens, required, lastFailure, mountedCredentials } = credential;
  const facts: readonly (readonly [string, Part] | undefined)[] = [
    credential.expiresAt === undefined ? undefined : ['Token ends', time(credential.expiresAt, now)],
    tokens === 'exchanged' ? ['Tokens', 'none is held: that of each request is exchanged'] : undefined,
    credential.grantInFlight
      ? [tokens === 'held' ? 'Next grant' : 'Exchanges', 'being asked for now']
      : credential.nextGrantAt === undefined
        ? undefined
        : [
            'Next grant',
            [time(credential.nextGrantAt, now), html` (${whyAsked(credential.nextGrantReason)})`],
          ],
    credential.tokenUrl === undefined ? undefined : ['Token endpoint', credential.tokenUrl],
    credential.issuerUrl === undefined ? undefined : ['Issuer', credential.issuerUrl],
    ['Mounted Secret', `${mountedCredentials.state}, changes seen by ${mountedCredentials.watchedBy}`],
    ...factsOfProofs(credential),
    credential.consecutiveFailures === 0 ? undefined : ['Failures in a row', credential.consecutiveFailures],
  ];
  const failure =
    lastFailure === undefined
      ? undefined
      : html`<p>Last failure ${time(lastFailure.at, now)}: ${lastFailure.detail}</p>`;
  const wish =
    mayChange && tokens === 'held'
      ? html`<form method="post" action="api/renew?credential=${encodeURIComponent(name)}"><button>Ask for a new token now<span class="out"> for credential ${name}</span></button></form>`
      : undefined;
  const standing = tokens === 'exchanged' && state === 'ready' ? 'exchanges tokens' : OF_CREDENTIALS[state];
  const shown = `${standing}${required ? '' : ' (the pod does not wait for it)'}`;
  return html`<article class="${level}" id="credential-${name}"><h3>${name} <b>${sign(level)} ${shown}</b></h3>${list(facts)}${failure}${timeline(credential.timeline, now)}${grants(credential, now)}${wish}</article>`;
}

function factsOfProofs({
  proofOfPossession: found,
}: CredentialReport): readonly (readonly [string, Part] | undefined)[] {
  if (found === undefined) return [];
  const { key, thumbprint, holdsBearer, proofs, nonces, nonceRepeats, refusedProofs } = found;
  const whose = key === 'own' ? 'own key of this process' : 'mounted key';
  const bound = thumbprint === undefined ? whose : `${whose}, ${thumbprint}`;
  const shown = holdsBearer ? 'none: the provider gave a Bearer token' : bound;
  return [
    ['Proof of possession (DPoP)', shown],
    ['Proofs made', proofs],
    ['Proofs refused', refusedProofs],
    nonces === 0 ? undefined : ['Nonces taken', nonces],
    nonceRepeats === 0 ? undefined : ['Requests repeated for a nonce', nonceRepeats],
  ];
}

function whyAsked(reason: string | undefined): string {
  return WHY_ASKED[reason ?? ''] ?? 'planned';
}

function grants({ name, history }: CredentialReport, now: string): Html | undefined {
  if (history.length === 0) return undefined;
  const rows = [...history]
    .reverse()
    .map(
      ({ at, reason: why, result, durationMs }) =>
        html`<tr><td>${time(at, now)}</td><td>${whyAsked(why)}</td><td class="${result === 'success' ? 'ok' : 'failing'}">${RESULTS[result]}</td><td>${durationMs} ms</td></tr>`,
    );
  return html`<details id="grants-${name}"><summary>Latest grants of ${name}</summary><table><thead><tr><th scope="col">When</th><th scope="col">Why</th><th scope="col">Result</th><th scope="col">Took</th></tr></thead><tbody>${rows}</tbody></table></details>`;
}

function routesSection({ routes, forwardProxy, at }: StatusReport): Html {
  const cards = firstOf(routes, (route) => routeCard(route, at));
  const none = html`<p>No routes${forwardProxy === undefined ? '' : ': tokens go to the hosts below'}.</p>`;
  return html`<section aria-labelledby="routes"><h2 id="routes">Routes</h2>${cards.length === 0 ? none : cards}</section>`;
}

function routeCard(route: RouteReport, now: string): Html {
  const { name, level, state, credential, requests, recent } = route;
  const speaks =
    route.upstreamSpeaks === undefined || route.upstreamSpeaks === route.protocol
      ? ''
      : `, ${route.upstreamSpeaks} now`;
  const facts: readonly (readonly [string, Part] | undefined)[] = [
    ['Upstream', route.upstream],
    ['Protocol', `${route.protocol}${speaks}`],
    ['Credential', credential],
    route.egressProxy === undefined ? undefined : ['Egress proxy', route.egressProxy],
    ['Requests since the start', requests.total],
    ['In flight', requests.inFlight],
    ['Errors since the start', requests.errors],
    requests.grpc.calls === 0
      ? undefined
      : ['gRPC calls', `${requests.grpc.calls}, ${requests.grpc.failures} not OK`],
  ];
  return html`<article class="${level}" id="route-${name}"><h3>${name} <b>${sign(level)} ${OF_ROUTES[state](credential)}</b></h3>${list(facts)}${traffic(name, recent, now)}</article>`;
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

/** A host may be in several lists. */
const IDS: Readonly<Record<WayOfHosts, string>> = {
  'forward proxy': 'forward',
  capture: 'capture',
  redirection: 'redirect',
};

function forwardProxySection({ forwardProxy, at }: StatusReport): Html | undefined {
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

function hostCard(
  { host, level, state, way, credential, clear, requests, recent }: HostReport,
  now: string,
): Html {
  const facts = list([
    ['Way', `${way}${clear ? ', in clear text where asked so' : ', over TLS'}`],
    ['Credential', credential],
    ['Requests since the start', requests.total],
    ['Errors since the start', requests.errors],
  ]);
  return html`<article class="${level}" id="${IDS[way]}-${host}"><h3>${host} <b>${sign(level)} ${OF_ROUTES[state](credential)}</b></h3>${facts}${traffic(host, recent, now)}</article>`;
}

function refusals({ refusals: total, refusedHosts }: ForwardProxyReport, now: string): Html {
  if (refusedHosts.length === 0) return html`<p>No host has been refused (${total} requests in all).</p>`;
  const items = refusedHosts.map(
    ({ host, times, lastAt }) =>
      html`<li>${host}: ${times === 1 ? 'once' : `${times} times`}, last ${time(lastAt, now)}</li>`,
  );
  return html`<h3>Refused</h3><p>${total} requests since the start. The latest hosts:</p><ul>${items}</ul>`;
}

function programSection(status: StatusReport, mayChange: boolean): Html {
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

function fileState({ configuration, at }: StatusReport): Html | undefined {
  if (configuration === undefined) return undefined;
  const { file, generation, since } = configuration;
  const { sentence, detail } = standingOf(configuration);
  const shown = detail === '' ? undefined : html`<pre tabindex="0" id="reload">${detail}</pre>`;
  return html`<p>Configuration: generation ${generation} of ${file}, in use ${lasting(since, at)}. ${sentence}</p>${shown}`;
}

function standingOf(standing: ReloadStateReport): { readonly sentence: string; readonly detail: string } {
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

/** The quietest first; the omitted ones would hide errors. */
const OFFERED_LEVELS = LOG_LEVELS.filter((level) => level !== 'fatal' && level !== 'silent').toReversed();

function logLevels(current: string): Html {
  const buttons = OFFERED_LEVELS.map(
    (level) =>
      html`<button formaction="api/log-level?level=${level}" aria-pressed="${String(level === current)}">${level}</button>`,
  );
  return html`<form method="post" aria-label="Log level, until the next start"><span>Log level until the next start:</span>${buttons}</form>`;
}

const LINKS = html`<nav aria-label="Links"><a href="metrics">Metrics</a><a href="api/status">Status as JSON</a><a href="readyz">readyz</a><a href="livez">livez</a><a href="startupz">startupz</a><a href="${DOCS}/runbooks/README.md">Runbooks</a><a href="${DOCS}/reference/status-page.md">About this page</a></nav>`;

const MAX_CARDS = 50;

/** The worst first. */
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
