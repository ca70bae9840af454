import { expect, it } from 'vitest';
import { seededRandom } from '../../scripts/simulation/random.ts';
import { createCallerRates, OF_ONE_CALLER } from '../../src/broker/caller-rates.ts';
import type { ServiceAccountCaller } from '../../src/callers/caller.ts';
import { BROKER_RECOVERY_MS } from '../../src/injector/profiles/broker-credentials.ts';
import { MAX_TOGETHER } from '../../src/injector/profiles/resolve-profiles.ts';
import { retryDelayMs } from '../../src/token/schedule.ts';
import { ManualClock } from '../support/manual-clock.ts';

const MAX_KEPT = 20_000;

function caller(name: string, serviceAccount = 'web'): ServiceAccountCaller {
  return { kind: 'service_account', namespace: 'shop', serviceAccount, pod: { name, uid: name } };
}

it('has a burst for each pod, and then so many a second', async () => {
  const clock = new ManualClock();
  const rates = createCallerRates(clock);
  const served = (times: number, who = caller('a')): number =>
    Array.from({ length: times }, () => rates.take(who)).filter(Boolean).length;
  expect(served(200)).toBe(OF_ONE_CALLER.burst);
  expect(served(1, caller('b'))).toBe(1);
  await clock.advance(3000);
  expect(served(200)).toBe(3 * OF_ONE_CALLER.perSecond);
  await clock.advance(3_600_000);
  expect(served(200)).toBe(OF_ONE_CALLER.burst);
});

it('keeps 20 000 allowances and no more, of those who asked last', () => {
  const rates = createCallerRates(new ManualClock());
  const spend = (who: ServiceAccountCaller): void => {
    while (rates.take(who));
  };
  spend(caller('first'));
  spend(caller('second'));
  for (let n = 0; n < MAX_KEPT - 2; n++) rates.take(caller(`pod-${n}`));
  expect(rates.size).toBe(20_000);
  // Asking once more it is the latest, and what it has spent stays spent.
  expect(rates.take(caller('first'))).toBe(false);
  rates.take(caller('one more'));
  expect(rates.size).toBe(20_000);
  expect(rates.take(caller('first'))).toBe(false);
  expect(rates.take(caller('second'))).toBe(true);
});

it('saves nothing up for who has been quiet, while one that asked before still waits', async () => {
  const clock = new ManualClock();
  const rates = createCallerRates(clock);
  while (rates.take(caller('greedy')));
  rates.take(caller('quiet'));
  await clock.advance(5000);
  const served = Array.from({ length: 200 }, () => rates.take(caller('quiet'))).filter(Boolean).length;
  expect(served).toBe(OF_ONE_CALLER.burst);
});

it('keeps nothing of who may ask as often as at first again', async () => {
  const clock = new ManualClock();
  const rates = createCallerRates(clock);
  for (let n = 0; n < 1000; n++) rates.take(caller(`pod-${n}`));
  while (rates.take(caller('greedy')));
  expect(rates.size).toBe(1001);
  await clock.advance(1000 / OF_ONE_CALLER.perSecond);
  rates.take(caller('next'));
  // All but the one that has more to wait for.
  expect(rates.size).toBe(2);
  await clock.advance((1000 * OF_ONE_CALLER.burst) / OF_ONE_CALLER.perSecond);
  rates.take(caller('next'));
  expect(rates.size).toBe(1);
});

it('serves a pod that has as many credentials as profiles may give it, and asks for all of them in an outage', async () => {
  const clock = new ManualClock();
  const rates = createCallerRates(clock);
  const random = seededRandom(1);
  const startedAtMs = clock.monotonicMs();
  const credentials = Array.from({ length: MAX_TOGETHER.credentials }, () => ({ dueMs: 0, failures: 0 }));
  let refused = 0;
  for (let elapsedMs = 0; elapsedMs < 600_000; elapsedMs += 100) {
    await clock.advance(startedAtMs + elapsedMs - clock.monotonicMs());
    for (const one of credentials.filter(({ dueMs }) => dueMs <= elapsedMs)) {
      if (!rates.take(caller('a'))) refused++;
      one.failures++;
      // As the sidecar does, of a broker that answers 503.
      const failure = {
        consecutiveFailures: one.failures,
        rejected: false,
        retryAfterMs: 1000,
        heldForMs: 0,
        lifetimeMs: 300_000,
        tookMs: 0,
        recoveryMs: BROKER_RECOVERY_MS,
      };
      one.dueMs = elapsedMs + retryDelayMs(failure, random());
    }
  }
  expect(refused).toBe(0);
});
