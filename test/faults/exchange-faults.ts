/** What a token endpoint can do wrong while the token of each request is exchanged: nothing is renewed, and nobody waits for the pod's. */

import { expect } from 'vitest';
import type { Certificates } from './certificates.ts';
import type { GrantKind } from './grant-kinds.ts';
import { describeAnswers, record } from './matrix.ts';
import { grantToken } from './provider.ts';
import { faultsNamed, type ProviderFault } from './provider-faults.ts';
import { World } from './world.ts';

const GRANT: GrantKind = {
  name: 'token_exchange of each request',
  type: 'urn:ietf:params:oauth:grant-type:token-exchange',
  credential: { grant: 'token_exchange', tokenExchange: { subjectTokenFrom: 'request' } },
  files: {},
};

export interface ExchangeFault extends ProviderFault {
  /** What a request gets whose token is not exchanged. */
  readonly error: 'token_unavailable' | 'subject_token_refused';
  /** The longest that the provider is not asked again once the fault is cured. Milliseconds. */
  readonly restMs: number;
}

/** The bounds of the configuration's defaults, and of `subject-tokens.ts`. */
const REQUEST_MS = 10_000;
const RESTS_MS = { away: 1000, refused: 5000, rejected: 30_000 };

export const EXCHANGE_FAULTS: readonly ExchangeFault[] = [
  ...faultsNamed([
    'connection refused',
    'accepts and never answers',
    'stops in the middle of its answer',
    'stops in the middle of its answer, over TLS',
    'reset mid-response',
    'TLS certificate expired',
    '500',
    'HTML 200',
  ]).map((fault) => ({ ...fault, error: 'token_unavailable', restMs: RESTS_MS.away }) as const),
  ...faultsNamed(['401 invalid_client']).map(
    (fault) => ({ ...fault, error: 'token_unavailable', restMs: RESTS_MS.rejected }) as const,
  ),
  ...faultsNamed(['400 invalid_grant']).map(
    (fault) => ({ ...fault, error: 'subject_token_refused', restMs: RESTS_MS.refused }) as const,
  ),
];

/**
 * One caller has had its token exchanged; the fault; the cure. The first is served from memory, others are told in time and never
 * sent on with what they brought, and after the cure they are served as soon as the provider may be asked again.
 */
export async function runExchangeFault(
  fault: ExchangeFault,
  certificates: Certificates,
  seed: number,
): Promise<void> {
  const world = await World.start({ seed, grant: GRANT, ...(fault.secure ? { certificates } : {}) });
  const { app, provider, upstream } = world;
  expect(await world.ask('Bearer ann')).toBe(200);
  expect(provider.requestsAtMs).toHaveLength(1);

  await fault.breaks?.(world, certificates);
  if (fault.behaviour !== undefined) provider.behaviour = fault.behaviour;
  provider.stalls = fault.stalls ?? false;
  const others = ['bob', 'eve', 'joe', 'bob'];
  for (const other of others) {
    expect(await world.ask(`Bearer ${other}`)).toBe(fault.error === 'token_unavailable' ? 503 : 403);
    expect(await world.ask('Bearer ann')).toBe(200);
  }
  const told = app.answers.filter(({ status }) => status !== 200);
  for (const { error, retryAfter, tookMs } of told) {
    expect(error).toBe(fault.error);
    expect(tookMs).toBeLessThanOrEqual(REQUEST_MS + 500);
    if (fault.error === 'token_unavailable') expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
  }
  const asked = provider.requestsAtMs.length - 1;
  expect(asked).toBeLessThanOrEqual(others.length);
  if (fault.unseen !== true) expect(asked).toBeGreaterThanOrEqual(1);
  const broken = await world.metrics();
  // One that refuses its subject says nothing of the credential.
  const failed = broken.sum('token_refresh_total', { result: fault.result, reason: 'subject' });
  if (fault.error === 'subject_token_refused') expect(failed).toBe(0);
  else expect(failed).toBeGreaterThanOrEqual(1);
  expect(broken.sum('token_ready')).toBe(1);
  expect(broken.sum('proxy_errors_total', { error: fault.error })).toBe(others.length);

  await fault.mends?.(world, certificates);
  provider.behaviour = grantToken;
  provider.stalls = false;
  await world.advance(fault.restMs);
  for (const other of others) expect(await world.ask(`Bearer ${other}`)).toBe(200);
  const mended = await world.metrics();
  expect(mended.sum('token_refresh_consecutive_failures')).toBe(0);
  // Once for each subject: the others had theirs from memory.
  expect(mended.sum('token_refresh_total', { result: 'success' })).toBe(1 + new Set(others).size);
  expect(upstream.violations).toEqual([]);
  expect(upstream.served).toBe(app.answers.length - told.length);
  expect([...provider.grantTypes]).toEqual([GRANT.type]);
  record({
    row: `${GRANT.name}: ${fault.name}`,
    app: describeAnswers(app.answers),
    grants: `${asked} for ${others.length} requests`,
    metrics: `${fault.result} ${failed}, ready 1`,
    recovery: `≤ ${fault.restMs / 1000} s`,
  });
}
