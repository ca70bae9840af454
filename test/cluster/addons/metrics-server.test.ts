import { afterAll, beforeAll, expect, it } from 'vitest';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { expectNoFailure, readyReplicas, replicasOf } from '../support/faults.ts';
import {
  callerByCertificate,
  callerByToken,
  gatewayValues,
  provideGatewaySecrets,
} from '../support/gateway.ts';
import { GATEWAY } from '../support/gateway-caller.ts';
import { installChart, NAMESPACE } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { type Pod, readyPods } from '../support/workload.ts';
import { startMetricsServer, stopMetricsServer } from './metrics-server.ts';

const SHOP = 'autoscaled';
/** Apps that call as fast as they are answered, nearly. */
const BUSY = 6;

const VALUES = {
  ...gatewayValues(SHOP),
  // A replica for each 20m: more than those who stay cost, and less than the busy ones do.
  'gateway.resources': { requests: { cpu: '200m' } },
  'gateway.autoscaling': {
    enabled: true,
    minReplicas: 1,
    maxReplicas: 3,
    targetCPUUtilizationPercentage: 10,
    behavior: { scaleDown: { stabilizationWindowSeconds: 15 } },
  },
};

interface Autoscaler {
  readonly status: {
    readonly desiredReplicas: number;
    readonly conditions: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
    }[];
  };
}

const autoscaler = (): Promise<Autoscaler> => get('hpa', GATEWAY, '-n', NAMESPACE);

inCluster('the autoscaler of the gateway, with metrics-server', () => {
  /** They call a few times a second, all the while. */
  let staying: readonly Pod[] = [];

  useShop(SHOP);
  beforeAll(async () => {
    await startMetricsServer();
    await provideGatewaySecrets(SHOP);
    await installChart(VALUES);
  });
  afterAll(stopMetricsServer);

  it('has figures to go by, and keeps one replica for few calls', async () => {
    await apply(...callerByCertificate(SHOP));
    staying = await readyPods(SHOP, 'by-certificate', 2);
    await eventually('the autoscaler is active', 120, async () => {
      const { status } = await autoscaler();
      return status.conditions.some(
        ({ type, status: is, reason }) =>
          type === 'ScalingActive' && is === 'True' && reason === 'ValidMetricFound',
      );
    });
    expect(await kubectl('top', 'pods', '-n', NAMESPACE)).toContain(GATEWAY);
    // To start costs a replica more than these calls do.
    await eventually('one replica is enough', 180, async () => {
      const { status } = await autoscaler();
      return status.desiredReplicas === 1 && (await replicasOf('gateway')).length === 1;
    });
  });

  it('adds replicas for many calls, and nobody notices', async () => {
    await apply(...callerByToken(SHOP, { INTERVAL_MS: '1' }));
    await kubectl('-n', SHOP, 'scale', 'deployment/by-token', `--replicas=${BUSY}`);
    const busy = await readyPods(SHOP, 'by-token', BUSY);
    await eventually('there are three replicas', 180, async () => (await replicasOf('gateway')).length === 3);
    await readyReplicas('gateway', 3);
    await expectNoFailure([...staying, ...busy], 20);
  });

  it('takes them away when these callers go, and those that stay do not notice', async () => {
    await kubectl('-n', SHOP, 'delete', 'deployment', 'by-token');
    await eventually('one replica is left', 240, async () => (await replicasOf('gateway')).length === 1);
    await expectNoFailure(staying, 20);
  }, 300_000);
});
