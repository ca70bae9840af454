/** How often a pod may ask the broker, beside how often its sidecar does. */

import { expect, it } from 'vitest';
import { seededRandom } from '../../scripts/simulation/random.ts';
import { createTokenEndpoint, OF_ONE_CALLER } from '../../src/broker/token-endpoint.ts';
import type { ServiceAccountCaller } from '../../src/callers/caller.ts';
import { BROKER_RECOVERY_MS } from '../../src/injector/profiles/broker-credentials.ts';
import { MAX_TOGETHER } from '../../src/injector/profiles/resolve-profiles.ts';
import { TokenBucket } from '../../src/platform/limits/token-bucket.ts';
import { retryDelayMs } from '../../src/token/schedule.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { formOf } from './running-broker.ts';

/** As many as are remembered beside one that asked before all of them. */
const OTHERS = 20_000 - 1;

it('a pod that asks too often is held back, and the others are not', () => {
  const clock = new ManualClock();
  let caller: ServiceAccountCaller | undefined;
  const endpoint = createTokenEndpoint({
    verify: () => ({ kind: 'accepted', caller: caller as ServiceAccountCaller }),
    credentials: { unread: () => undefined, find: () => ({ config: {} }) as never, now: () => undefined },
    grants: {
      answer: () => ({ kind: 'given', token: 't', expiresInSeconds: 200 }),
      size: 0,
      close: () => Promise.resolve(),
    },
    clock,
    log: captureLog().log,
  });
  const address = { kind: 'address', profile: 'payments', credential: 'payments' } as const;
  const body = Buffer.from(formOf('a.b.c'));
  const isServed = (uid: string): boolean => {
    const pod = { name: 'of-one-deployment', uid };
    caller = { kind: 'service_account', namespace: 'shop', serviceAccount: 'web', pod };
    return (endpoint(address, body, clock.monotonicMs(), '10.0.0.1') as { kind: string }).kind === 'given';
  };
  const served = Array.from({ length: OF_ONE_CALLER.burst + 1 }, () => isServed('greedy'));
  expect(served).toEqual([...Array<boolean>(OF_ONE_CALLER.burst).fill(true), false]);
  for (let other = 0; other < OTHERS; other++) if (!isServed(`pod-${other}`)) expect.fail(`pod-${other}`);
  expect(isServed('greedy')).toBe(false);
});

it('a pod with the highest number of credentials is served, also when it asks for all of them in an outage', async () => {
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
