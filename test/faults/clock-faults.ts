/** The wall clock steps, under a pod that holds a token. */

import { expect } from 'vitest';
import { MAX_GRANTS_PER_MINUTE, mostInAnyMinute } from './designed-grants.ts';
import { describeAnswers, record } from './matrix.ts';
import { World } from './world.ts';

const HOUR_MS = 3_600_000;

export interface ClockFault {
  readonly name: string;
  /** The first step, and after ten minutes the second. */
  readonly stepsMs: readonly [number, number];
  /** Grants that the steps themselves may cause: a token past its end by the wall clock is replaced at once. */
  readonly extraGrants: number;
}

export const CLOCK_FAULTS: readonly ClockFault[] = [
  { name: 'clock an hour forward, then back', stepsMs: [HOUR_MS, -HOUR_MS], extraGrants: 1 },
  { name: 'clock an hour back, then forward', stepsMs: [-HOUR_MS, HOUR_MS], extraGrants: 1 },
];

const BETWEEN_MS = 600_000;

export async function runClockFault({ name, stepsMs, extraGrants }: ClockFault, seed: number): Promise<void> {
  const world = await World.start({ seed });
  const { app, provider, upstream } = world;
  await world.until(() => world.token.ready, 1000, 10);
  await world.live(20_000);
  for (const stepMs of stepsMs) {
    const before = provider.requestsAtMs.length;
    world.clock.stepWall(stepMs);
    expect(world.token.ready).toBe(stepMs < 0);
    expect(await world.ask()).toBe(200);
    expect(provider.requestsAtMs.length - before).toBe(stepMs < 0 ? 0 : extraGrants);
    const metrics = await world.metrics();
    expect(metrics.sum('token_ready')).toBe(1);
    expect(metrics.sum('token_expiry_timestamp_seconds')).toBeGreaterThan(world.clock.now().wallMs / 1000);
    await world.live(BETWEEN_MS);
  }

  expect(app.answers.every(({ status, tookMs }) => status === 200 && tookMs === 0)).toBe(true);
  expect(upstream.violations).toEqual([]);
  const most = mostInAnyMinute(provider.requestsAtMs);
  const designed = MAX_GRANTS_PER_MINUTE.succeeding + extraGrants;
  expect(most).toBeLessThanOrEqual(designed);
  const grants = provider.requestsAtMs.length;
  const metrics = await world.metrics();
  expect(metrics.sum('token_refresh_total', { result: 'success' })).toBe(grants);
  expect(metrics.sum('token_refresh_total')).toBe(grants);
  record({
    row: name,
    app: describeAnswers(app.answers),
    grants: `${grants} in ${(2 * BETWEEN_MS) / 1000} s, ≤ ${most}/min of ${designed}`,
    metrics: `success ${grants}, ready 1`,
    recovery: 'within the next request',
  });
}
