/** An upstream that refuses every token must not become load on the provider. */

import { expect } from 'vitest';
import { MOST_GRANTS_PER_MINUTE, mostInAnyMinute } from './designed-grants.ts';
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
  const designed = MOST_GRANTS_PER_MINUTE.succeeding + 2;
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
