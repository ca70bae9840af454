/** Not in CI: a new leader waits five minutes before it evicts. */

import { afterAll, it } from 'vitest';
import { eventually } from '../node/run.ts';
import { MISSED, MISSED_PODS, makeMissedPods, missedPodsTold } from '../support/missed-pods.ts';
import { installChart } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { hasSidecar, podsOf, readyPods } from '../support/workload.ts';

const SHOP = 'healing';
const VALUES = { 'injector.webhook.enforce': false };

inCluster('healing by eviction', () => {
  useShop(SHOP);
  afterAll(() => installChart());

  it('makes pods anew that were made without the sidecar while the injector was away', async () => {
    await installChart(VALUES);
    await makeMissedPods(SHOP);
    await installChart({ ...VALUES, 'injector.kubernetesApi.healing': 'evict' });
    await missedPodsTold(SHOP);
    await eventually('pods with the sidecar', 600, async () => {
      const pods = await podsOf(SHOP, MISSED);
      return pods.length === MISSED_PODS && pods.every(hasSidecar);
    });
    await readyPods(SHOP, MISSED, MISSED_PODS);
  }, 1_200_000);
});
