/** Credentials that nobody asks for any more: they are closed, and no figure of theirs stays. */

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { connectBroker } from '../../src/broker/cluster.ts';
import { createBrokerMetrics } from '../../src/broker/metrics.ts';
import { createLogger } from '../../src/platform/log/logger.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { type Clock, systemClock } from '../../src/platform/time/clock.ts';
import { REVIEWS } from '../callers/fake-cluster.ts';
import { until } from '../support/until.ts';
import { formOf, PROFILES, startWorld } from './running-broker.ts';

const LOOK_INTERVAL_MS = 10_000;

const IDLE_MS = 1_800_000;

/** The parts behind the listener, whose looks at what is idle are had at will, `passedMs` after now. */
async function start() {
  const world = await startWorld();
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-broker-'));
  const looks = new Set<() => void>();
  let passedMs = 0;
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + passedMs,
    after(ms, run) {
      if (ms !== LOOK_INTERVAL_MS) return systemClock.after(ms, run);
      const cancel = systemClock.after(ms, run);
      looks.add(run);
      return () => {
        looks.delete(run);
        cancel();
      };
    },
  };
  const registry = new Registry();
  const options = {
    registry,
    metrics: createBrokerMetrics(registry),
    clock,
    random: () => 0.5,
    log: createLogger('silent'),
  };
  const config = {
    kubeconfig: await world.cluster.api.kubeconfig(),
    namespace: 'token-sidecar',
    secretsDirectory: directory,
    audience: 'token-sidecar-broker',
  };
  const broker = await connectBroker(config as Parameters<typeof connectBroker>[0], options);
  onTestFinished(async () => {
    await broker.close();
    await rm(directory, { recursive: true, force: true });
  });
  const body = Buffer.from(formOf(world.cluster.token(world.cluster.pod('shop', 'web'))));
  async function askUntil(expected: string): Promise<void> {
    for (;;) {
      const answer = await broker.endpoint(
        { kind: 'address', profile: 'payments', credential: 'payments' },
        body,
        clock.monotonicMs(),
        '10.0.0.1',
      );
      if ((answer.kind === 'given' ? 'given' : answer.code) === expected) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  await until(() => broker.missing().length === 0);
  await askUntil('given');
  return {
    ...world,
    broker,
    directory,
    clock,
    askUntil,
    lookAfter(ms: number) {
      passedMs = ms;
      for (const look of [...looks]) look();
    },
    stats: () => registry.metrics(),
  };
}

const OURS = 'credential="payments/payments"';

it('a credential of no profile is closed, and its metric series end', async () => {
  const { cluster, broker, askUntil, lookAfter, stats } = await start();
  expect(await stats()).toContain(`token_sidecar_token_ready{${OURS}} 1`);
  cluster.api.delete(PROFILES, 'payments');
  await askUntil('unauthorized_client');
  lookAfter(0);
  expect(broker.openCredentials()).toBe(0);
  await expect.poll(stats).not.toContain(OURS);
});

it('a credential unused for half an hour is closed, and opened again by the next request', async () => {
  const { broker, askUntil, lookAfter, stats } = await start();
  lookAfter(IDLE_MS - 60_000);
  expect(broker.openCredentials()).toBe(1);
  lookAfter(IDLE_MS + 1000);
  expect(broker.openCredentials()).toBe(0);
  await askUntil('given');
  expect(await stats()).toContain(`token_sidecar_token_ready{${OURS}} 1`);
});

it('a caller verified after the end leaves no Secret on disk', async () => {
  const { cluster, broker, directory, clock } = await start();
  const review = cluster.api.answers.get(REVIEWS);
  if (review === undefined) throw new Error('nobody reviews tokens');
  const asked = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  cluster.api.answers.set(REVIEWS, async (body) => {
    asked.resolve();
    await ended.promise;
    return await review(body);
  });
  const body = Buffer.from(formOf(cluster.token(cluster.pod('shop', 'late'))));
  const address = { kind: 'address', profile: 'payments', credential: 'payments' } as const;
  const answer = broker.endpoint(address, body, clock.monotonicMs(), '10.0.0.1');
  await asked.promise;
  await broker.close();
  ended.resolve();
  expect(await answer).toMatchObject({ kind: 'refused', code: 'temporarily_unavailable' });
  expect(broker.openCredentials()).toBe(0);
  expect(await readdir(directory)).toEqual([]);
});
