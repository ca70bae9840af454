/** A verifier before a fake cluster, on a clock that the test moves. */

import { onTestFinished } from 'vitest';
import { createCallerMetrics } from '../../src/callers/metrics.ts';
import { CROWD, createServiceAccountVerifier } from '../../src/callers/service-account-verifier.ts';
import { connectKubernetes } from '../../src/platform/kubernetes/client.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { AUDIENCE, FakeCluster } from './fake-cluster.ts';

export async function startVerifying(alg: 'ES256' | 'RS256' = 'ES256', crowd = CROWD) {
  const clock = new ManualClock();
  const cluster = await FakeCluster.start(clock, alg);
  const { log, lines } = captureLog();
  const registry = new Registry();
  const verifier = createServiceAccountVerifier(connectKubernetes(await cluster.api.kubeconfig(), clock), {
    audience: AUDIENCE,
    clock,
    random: () => 0.5,
    log,
    metrics: createCallerMetrics(registry),
    crowd,
  });
  onTestFinished(() => verifier.close());
  await until(verifier.ready);
  return {
    clock,
    cluster,
    verifier,
    lines,
    registry,
    verify: (token: string, from = '10.0.0.1') => verifier.verify(token, from),
  };
}
