/** Upstreams that answer 401: none may become load on the provider, and a revocation is not for the app to see. */

import { expect } from 'vitest';
import type { Certificates } from './certificates.ts';
import { MAX_GRANTS_PER_MINUTE, mostInAnyMinute } from './designed-grants.ts';
import { describeAnswers, record } from './matrix.ts';
import { World } from './world.ts';

const FAULT_MS = 600_000;

export async function runUpstreamRefusing(seed: number): Promise<void> {
  const world = await World.start({ seed });
  const { app, provider, upstream } = world;
  await world.until(() => world.token.ready, 1000, 10);
  upstream.refusesAll = true;
  await world.live(FAULT_MS);
  expect(app.answers.every(({ status, tookMs }) => status === 401 && tookMs === 0)).toBe(true);
  const most = mostInAnyMinute(provider.requestsAtMs);
  // Forced renewals are half a minute apart at least.
  const designed = MAX_GRANTS_PER_MINUTE.succeeding + 2;
  expect(most).toBeLessThanOrEqual(designed);
  const grants = provider.requestsAtMs.length;
  const metrics = await world.metrics();
  const forced = metrics.sum('token_refresh_total', { reason: 'upstream_401' });
  expect(forced).toBeGreaterThanOrEqual(1);
  expect(forced).toBeLessThanOrEqual(5);
  expect(metrics.sum('proxy_upstream_unauthorized_total')).toBeGreaterThanOrEqual(app.answers.length);

  upstream.refusesAll = false;
  expect(await world.ask()).toBe(200);
  expect(upstream.violations).toEqual([]);
  record({
    row: 'upstream answers 401 to every token',
    app: describeAnswers(app.answers),
    grants: `${grants} in ${FAULT_MS / 1000} s, ≤ ${most}/min of ${designed}`,
    metrics: `upstream_401 ${forced}, ready 1`,
    recovery: 'within the next request',
  });
}

/** A realm whose tokens are revoked twice within ten seconds: no app may see it. */
export async function runRevokedTwice(seed: number, certificates?: Certificates): Promise<void> {
  const world = await World.start({ seed, ...(certificates === undefined ? {} : { certificates }) });
  const { app, provider, upstream } = world;
  await world.until(() => world.token.ready, 1000, 10);
  await world.live(20_000);
  for (let revocation = 0; revocation < 2; revocation++) {
    for (const token of provider.given) upstream.revoked.add(token);
    // Several at once, then one every half second.
    await Promise.all(Array.from({ length: 10 }, () => world.ask()));
    for (let request = 0; request < 8; request++) {
      await world.ask();
      await world.advance(500);
    }
  }
  await world.live(20_000);
  expect(app.answers.every(({ status, tookMs }) => status === 200 && tookMs === 0)).toBe(true);
  expect(upstream.violations).toEqual([]);
  const metrics = await world.metrics();
  expect(metrics.sum('token_refresh_total', { reason: 'upstream_401' })).toBe(2);
  expect(metrics.sum('proxy_replays_total', { result: 'failure' })).toBe(0);
  const most = mostInAnyMinute(provider.requestsAtMs);
  const designed = MAX_GRANTS_PER_MINUTE.succeeding + 2;
  expect(most).toBeLessThanOrEqual(designed);
  record({
    row: `tokens revoked twice in ten seconds${certificates === undefined ? '' : ', over TLS'}`,
    app: describeAnswers(app.answers),
    grants: `${provider.requestsAtMs.length} in all, ≤ ${most}/min of ${designed}`,
    metrics: 'upstream_401 2, replays failure 0',
    recovery: 'within the same request',
  });
}
