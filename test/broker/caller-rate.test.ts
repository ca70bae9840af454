/** How often a pod may ask the broker, beside how often its sidecar does. */

import { expect, it } from 'vitest';
import { seededRandom } from '../../scripts/simulation/random.ts';
import { OF_ONE_CALLER } from '../../src/broker/token-endpoint.ts';
import { BROKER_RECOVERY_MS } from '../../src/injector/profiles/broker-credentials.ts';
import { MAX_TOGETHER } from '../../src/injector/profiles/resolve-profiles.ts';
import { TokenBucket } from '../../src/platform/limits/token-bucket.ts';
import { retryDelayMs } from '../../src/token/schedule.ts';
import { ManualClock } from '../support/manual-clock.ts';

it('serves a pod that has as many credentials as profiles may give it, and asks for all of them in an outage', async () => {
  const clock = new ManualClock();
  const rate = new TokenBucket(OF_ONE_CALLER);
  const random = seededRandom(1);
  const startedAtMs = clock.monotonicMs();
  const credentials = Array.from({ length: MAX_TOGETHER.credentials }, () => ({ dueMs: 0, failures: 0 }));
  let refused = 0;
  for (let elapsedMs = 0; elapsedMs < 600_000; elapsedMs += 100) {
    await clock.advance(startedAtMs + elapsedMs - clock.monotonicMs());
    for (const one of credentials.filter(({ dueMs }) => dueMs <= elapsedMs)) {
      if (!rate.take(clock.monotonicMs())) refused++;
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
