/** Everything that a token endpoint can do wrong while a pod lives on. */

import { expect } from 'vitest';
import type { RefusedGrant } from '../../src/token/provider/token-response.ts';
import type { Certificates } from './certificates.ts';
import { MAX_GRANTS_PER_MINUTE, mostInAnyMinute } from './designed-grants.ts';
import type { GrantKind } from './grant-kinds.ts';
import { describeAnswers, record, seconds } from './matrix.ts';
import { answer, type Behaviour, grantToken, grantWith, refuse } from './provider.ts';
import { World } from './world.ts';

export interface ProviderFault {
  readonly name: string;
  readonly result: RefusedGrant['result'];
  /** What the log and the status page say of it. */
  readonly detail: RegExp;
  readonly behaviour?: Behaviour;
  /** Only the request timeout ends a grant. */
  readonly stalls?: boolean;
  /** Other than by what it answers: breaks it; the answer mends it. */
  readonly breaks?: (world: World, certificates: Certificates) => Promise<void> | void;
  readonly mends?: (world: World, certificates: Certificates) => Promise<void> | void;
  /** The requests never reach the provider. */
  readonly unseen?: boolean;
  readonly secure?: boolean;
  /** Longest wait for the next grant once the fault is cured, where the provider asked for one. */
  readonly askedMs?: number;
}

const LIFETIME_MS = 300_000;

/** Longer than the longest a token that was just obtained can last, so that every row also sees it run out. */
const FAULT_MS = 400_000;

/** A token is not sent to the very end of its life (`sendableMs`). */
const UNSENT_MS = 1250;

/** The bounds of the configuration's defaults. */
const WAIT_MS = 10_000;
const REQUEST_MS = 10_000;

/** The longest steps of the backoff (schedule.ts), for tokens of five minutes. */
const MAX_STEP_MS = { unavailable: 30_000, invalid_response: 30_000, rejected: 600_000 };

const html = '<!doctype html><title>Sign in</title>';

function resetMidway(response: Parameters<Behaviour>[0]): void {
  response.writeHead(200, { 'content-length': '500' });
  response.write('{"access_token":"');
  setImmediate(() => response.socket?.resetAndDestroy());
}

/** Of a token that is never given whole. */
const HALF = 'half-of-a-tok';

/** Head and the beginning of a token; then nothing, for as long as the client stays. */
function stopMidway(response: Parameters<Behaviour>[0]): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
  response.write(`{"access_token":"${HALF}`);
}

/** A byte now and then for as long as the client stays: every read succeeds, the whole never comes. */
function drip(response: Parameters<Behaviour>[0]): void {
  response.writeHead(200, { 'content-length': '100000' });
  const next = setInterval(() => response.write(' '), 1);
  response.once('close', () => clearInterval(next));
}

/** RFC 6749 §5.2, and RFC 8707 §2. */
const REJECTIONS = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  'access_denied',
];

const RETRY_AFTER_SECONDS = 75;

export const PROVIDER_FAULTS: readonly ProviderFault[] = [
  {
    name: 'connection refused',
    result: 'unavailable',
    detail: /ECONNREFUSED/,
    breaks: ({ provider }) => provider.close(),
    mends: ({ provider }) => provider.listen(),
    unseen: true,
  },
  {
    name: 'accepts and never answers',
    result: 'unavailable',
    detail: /no whole answer within 10 s/,
    behaviour: () => {},
    stalls: true,
  },
  { name: 'reset mid-response', result: 'unavailable', detail: /./, behaviour: resetMidway },
  ...(
    [
      ['expired', 'expired', /CERT_HAS_EXPIRED/],
      ['for another name', 'otherName', /ERR_TLS_CERT_ALTNAME_INVALID/],
      ['of an unknown CA', 'otherAuthority', /UNABLE_TO_(GET_ISSUER_CERT_LOCALLY|VERIFY_LEAF_SIGNATURE)/],
    ] as const
  ).map(
    ([name, certificate, detail]): ProviderFault => ({
      name: `TLS certificate ${name}`,
      result: 'unavailable',
      detail,
      secure: true,
      breaks: ({ provider }, certificates) => provider.showCertificate(certificates[certificate]),
      mends: ({ provider }, certificates) => provider.showCertificate(certificates.whole),
      unseen: true,
    }),
  ),
  ...REJECTIONS.map(
    (error): ProviderFault => ({
      name: `400 ${error}`,
      result: 'rejected',
      detail: new RegExp(`^status 400 ${error}$`),
      behaviour: refuse(400, { error }),
    }),
  ),
  ...['server_error', 'temporarily_unavailable', 'slow_down'].map(
    (error): ProviderFault => ({
      name: `400 ${error}`,
      result: 'unavailable',
      detail: new RegExp(`^status 400 ${error}$`),
      behaviour: refuse(400, { error }),
    }),
  ),
  {
    name: '400 of a stranger',
    result: 'invalid_response',
    detail: /^status 400$/,
    behaviour: refuse(400, html),
  },
  { name: '401', result: 'rejected', detail: /^status 401$/, behaviour: refuse(401) },
  {
    name: '401 invalid_client',
    result: 'rejected',
    detail: /^status 401 invalid_client$/,
    behaviour: refuse(401, { error: 'invalid_client' }),
  },
  { name: '403', result: 'rejected', detail: /^status 403$/, behaviour: refuse(403, html) },
  { name: '404', result: 'invalid_response', detail: /^status 404$/, behaviour: refuse(404, html) },
  { name: '429', result: 'unavailable', detail: /^status 429$/, behaviour: refuse(429) },
  {
    name: `429 Retry-After: ${RETRY_AFTER_SECONDS}`,
    result: 'unavailable',
    detail: /^status 429$/,
    behaviour: refuse(429, '', { 'retry-after': String(RETRY_AFTER_SECONDS) }),
    askedMs: RETRY_AFTER_SECONDS * 1000,
  },
  {
    name: '429 Retry-After: a date',
    result: 'unavailable',
    detail: /^status 429$/,
    breaks(world) {
      world.provider.behaviour = (response, provider) => {
        // The field has whole seconds.
        const atMs = world.clock.now().wallMs + RETRY_AFTER_SECONDS * 1000 + 1000;
        refuse(429, '', { 'retry-after': new Date(atMs).toUTCString() })(response, provider);
      };
    },
    askedMs: RETRY_AFTER_SECONDS * 1000,
  },
  { name: '500', result: 'unavailable', detail: /^status 500$/, behaviour: refuse(500, html) },
  { name: '503', result: 'unavailable', detail: /^status 503$/, behaviour: refuse(503, html) },
  {
    name: 'HTML 200',
    result: 'invalid_response',
    detail: /^status 200 with text\/html/,
    behaviour: answer(200, html, { 'content-type': 'text/html' }),
  },
  { name: 'empty 200', result: 'invalid_response', detail: /an empty body/, behaviour: answer(200, '') },
  {
    name: 'truncated JSON',
    result: 'invalid_response',
    detail: /where a JSON object was expected/,
    behaviour: answer(200, '{"access_token":"abc","expires_in":300,"token_ty'),
  },
  {
    name: 'JSON of another shape',
    result: 'invalid_response',
    detail: /where a JSON object was expected/,
    behaviour: answer(200, '["access_token"]'),
  },
  {
    name: 'access_token a number',
    result: 'invalid_response',
    detail: /access_token is missing/,
    behaviour: grantWith({ access_token: 12_345 }),
  },
  {
    name: 'access_token empty',
    result: 'invalid_response',
    detail: /access_token is missing/,
    behaviour: grantWith({ access_token: '' }),
  },
  {
    name: 'access_token missing',
    result: 'invalid_response',
    detail: /access_token is missing/,
    behaviour: grantWith({ access_token: undefined }),
  },
  {
    name: 'access_token with a line end',
    result: 'invalid_response',
    detail: /no header can carry/,
    behaviour: grantWith({ access_token: 'abc\r\nx-injected: 1' }),
  },
  {
    name: 'token_type missing',
    result: 'invalid_response',
    detail: /token_type is missing, not Bearer/,
    behaviour: grantWith({ token_type: undefined }),
  },
  {
    name: 'expires_in a boolean',
    result: 'invalid_response',
    detail: /expires_in is not/,
    behaviour: grantWith({ expires_in: true }),
  },
  {
    name: 'already expired: expires_in 0',
    result: 'invalid_response',
    detail: /expires_in is 0/,
    behaviour: grantWith({ expires_in: 0 }),
  },
  {
    name: 'already expired: expires_in -60',
    result: 'invalid_response',
    detail: /expires_in is not/,
    behaviour: grantWith({ expires_in: -60 }),
  },
  {
    name: 'giant body',
    result: 'invalid_response',
    detail: /more than 262144 bytes/,
    behaviour: answer(200, `{"access_token":"${'x'.repeat(5_000_000)}"}`),
  },
  {
    name: 'slow-drip body',
    result: 'unavailable',
    detail: /no whole answer within 10 s/,
    behaviour: drip,
    stalls: true,
  },
  ...(['', ', over TLS'] as const).map(
    (transport): ProviderFault => ({
      name: `stops in the middle of its answer${transport}`,
      result: 'unavailable',
      detail: /no whole answer within 10 s/,
      behaviour: stopMidway,
      stalls: true,
      secure: transport !== '',
    }),
  ),
  {
    name: 'redirect',
    result: 'invalid_response',
    detail: /^status 302$/,
    behaviour: refuse(302, '', { location: 'http://127.0.0.1:1/elsewhere' }),
  },
];

/** @throws where there is none of a name. */
export function faultsNamed(names: readonly string[]): readonly ProviderFault[] {
  return names.map((wanted) => {
    const fault = PROVIDER_FAULTS.find(({ name }) => name === wanted);
    if (fault === undefined) throw new Error(`there is no fault of a provider by the name of ${wanted}`);
    return fault;
  });
}

/**
 * A pod with a token; the fault, for longer than the token lives; the cure. The app must be served while the token
 * lives, told 503 within the bound from then on, and served again one backoff step after the cure at the latest.
 */
export async function runProviderFault(
  fault: ProviderFault,
  certificates: Certificates,
  seed: number,
  grant?: GrantKind,
): Promise<void> {
  const world = await World.start({ seed, grant, ...(fault.secure ? { certificates } : {}) });
  const { app, provider, upstream } = world;
  await world.until(() => world.token.ready, 1000, 10);
  expect(await world.ask()).toBe(200);
  const tokenEndsAtMs = world.nowMs() + (world.token.expiresAtMs ?? Number.NaN) - world.clock.now().wallMs;
  const before = { attempts: world.attempts.length, requests: provider.requestsAtMs.length };
  expect(before).toEqual({ attempts: 1, requests: 1 });

  await fault.breaks?.(world, certificates);
  if (fault.behaviour !== undefined) provider.behaviour = fault.behaviour;
  provider.stalls = fault.stalls ?? false;
  await world.live(FAULT_MS);

  for (const { status, error, retryAfter, sentAtMs, tookMs } of app.answers) {
    expect(tookMs).toBeLessThanOrEqual(WAIT_MS + 500);
    const leftMs = tokenEndsAtMs - sentAtMs;
    if (leftMs > UNSENT_MS) expect({ status, tookMs }).toEqual({ status: 200, tookMs: 0 });
    if (leftMs <= 0) expect({ status, error }).toEqual({ status: 503, error: 'token_unavailable' });
    if (status === 503) expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
  }
  const refused = app.answers.filter(({ status }) => status === 503).length;
  expect(refused).toBeGreaterThan(0);

  // A grant may be in flight now; it has not ended, so it is in no metric and no history yet.
  const inFlight = world.token.grantInFlight ? 1 : 0;
  const failures = world.attempts.length - before.attempts;
  expect(failures).toBeGreaterThanOrEqual(2);
  // One that has just been sent may still be on its way.
  await expect
    .poll(() => provider.requestsAtMs.length - before.requests, { timeout: 5000 })
    .toBe(fault.unseen ? 0 : failures + inFlight);
  const designed = MAX_GRANTS_PER_MINUTE[fault.result === 'rejected' ? 'rejectedWithToken' : 'failing'];
  const most = mostInAnyMinute(world.attempts);
  expect(most).toBeLessThanOrEqual(designed);
  if (fault.askedMs !== undefined) {
    for (const gap of gaps(world.attempts.slice(1))) expect(gap).toBeGreaterThanOrEqual(fault.askedMs);
  }

  const broken = await world.metrics();
  expect(broken.sum('token_refresh_total', { result: fault.result })).toBe(failures);
  expect(broken.sum('token_refresh_total', { result: 'success' })).toBe(1);
  expect(broken.sum('token_refresh_consecutive_failures')).toBe(failures);
  expect(broken.sum('token_ready')).toBe(0);
  expect(broken.sum('token_expiry_timestamp_seconds')).toBeLessThanOrEqual(world.clock.now().wallMs / 1000);
  expect(broken.sum('proxy_errors_total', { error: 'token_unavailable' })).toBe(refused);
  expect(world.token.lastFailure?.detail).toMatch(fault.detail);

  await fault.mends?.(world, certificates);
  provider.behaviour = grantToken;
  const stepMs = Math.max(MAX_STEP_MS[fault.result], (fault.askedMs ?? 0) * 1.1);
  const recoveredMs = await world.until(() => world.token.ready, stepMs + inFlight * REQUEST_MS + 250);
  provider.stalls = false;
  expect(await world.ask()).toBe(200);
  await world.live(LIFETIME_MS);
  expect(app.answers.slice(-60).every(({ status }) => status === 200)).toBe(true);

  const mended = await world.metrics();
  expect(mended.sum('token_ready')).toBe(1);
  expect(mended.sum('token_refresh_consecutive_failures')).toBe(0);
  expect(mended.sum('token_refresh_total', { result: fault.result })).toBe(failures + inFlight);
  expect(upstream.violations).toEqual([]);
  expect(world.logLines.filter((line) => line.includes(HALF))).toEqual([]);
  expect(mostInAnyMinute(world.attempts)).toBeLessThanOrEqual(designed);
  expect([...provider.grantTypes]).toEqual([grant?.type ?? 'client_credentials']);
  record({
    row: grant === undefined ? fault.name : `${grant.name}: ${fault.name}`,
    app: describeAnswers(app.answers),
    grants: `${failures} in ${FAULT_MS / 1000} s, ≤ ${most}/min of ${designed}`,
    metrics: `${fault.result} ${failures}, ready 0 → 1`,
    recovery: `${seconds(recoveredMs)} of ${seconds(stepMs)}`,
  });
}

function gaps(atMs: readonly number[]): number[] {
  return atMs.slice(1).map((at, index) => at - (atMs[index] as number));
}
