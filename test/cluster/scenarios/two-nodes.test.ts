import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addNode, removeNode } from '../node/cluster.ts';
import { apply, kubectl } from '../node/kubectl.ts';
import { FIRST_NODE, SECOND_NODE } from '../node/nodes.ts';
import { eventually } from '../node/run.ts';
import { HAS_POD_LOGS_DIRECTORY } from '../node/worker.ts';
import { expectNoFailure, readyReplicas, restart, totalOf } from '../support/faults.ts';
import { clientSecret, ISSUER, installChart, NAMESPACE } from '../support/release.ts';
import { inClusterWhere, useShop } from '../support/scenario.ts';
import { makePodsDuring } from '../support/unscheduled-pods.ts';
import {
  API_URL,
  askingForSidecar,
  callingTemplate,
  container,
  hasSidecar,
  metricOf,
  type Pod,
  podsOf,
  readyPods,
} from '../support/workload.ts';

const SHOP = 'two-nodes';
const APP_PODS = 4;
const PROFILE = 'two-nodes';

const on = ({ name }: { readonly name: string }): object => ({
  nodeSelector: { 'kubernetes.io/hostname': name },
});

/** An app with a sidecar, a Service and a budget, on as many nodes as there are. */
function app(): object[] {
  const labels = { app: 'app' };
  const selector = { matchLabels: labels };
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'app', namespace: SHOP },
      spec: {
        replicas: APP_PODS,
        selector,
        template: callingTemplate(
          'app',
          askingForSidecar(SHOP),
          {},
          {
            terminationGracePeriodSeconds: 30,
            containers: [
              {
                ...container('relay'),
                readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1, timeoutSeconds: 5 },
              },
            ],
            topologySpreadConstraints: [
              {
                maxSkew: 1,
                topologyKey: 'kubernetes.io/hostname',
                whenUnsatisfiable: 'ScheduleAnyway',
                labelSelector: selector,
                matchLabelKeys: ['pod-template-hash'],
              },
            ],
          },
        ),
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'app', namespace: SHOP },
      spec: { selector: labels, ports: [{ port: 8080 }] },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'app', namespace: SHOP },
      spec: { maxUnavailable: 1, selector },
    },
  ];
}

/** Those who call it by its Service, from the node that stays. */
function callers(): object {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'callers', namespace: SHOP },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'callers' } },
      template: callingTemplate(
        'callers',
        {},
        { URL: `http://app.${SHOP}.svc:8080/`, INTERVAL_MS: '20' },
        on(FIRST_NODE),
      ),
    },
  };
}

/** Admits the namespace to the broker's tokens. */
function profile(): object {
  const credential = { via: 'broker', authUrl: ISSUER, allowInsecureTokenUrl: true, audience: 'api' };
  return {
    apiVersion: 'token-sidecar.dev/v1alpha1',
    kind: 'ClusterTokenProfile',
    metadata: { name: PROFILE },
    spec: {
      namespaces: { names: [SHOP] },
      credentials: [{ ...credential, secret: { name: 'orders-oauth' } }],
      routes: [{ upstream: API_URL.replace('SHOP', SHOP) }],
    },
  };
}

/** On the second node, with no secret of its own. */
function brokeredApp(): object {
  const annotations = { 'token-sidecar.dev/inject': 'true', 'token-sidecar.dev/profile': PROFILE };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'brokered', namespace: SHOP },
    spec: {
      selector: { matchLabels: { app: 'brokered' } },
      template: callingTemplate('brokered', annotations, {}, on(SECOND_NODE)),
    },
  };
}

const nodesOf = (pods: readonly Pod[]): readonly (string | undefined)[] =>
  pods.map(({ spec }) => spec.nodeName).sort();

/** Of the app, once none of those is left that a rollout or a drain took away. */
function appPods(): Promise<readonly Pod[]> {
  return readyPods(SHOP, 'app', APP_PODS);
}

inClusterWhere(HAS_POD_LOGS_DIRECTORY)('on two nodes', () => {
  let calling: readonly Pod[] = [];

  afterAll(() => removeNode(SECOND_NODE));
  useShop(SHOP);
  // The API and the provider are on the first node by now.
  beforeAll(() => addNode(SECOND_NODE));

  it('the injector has a replica on each, once it is rolled', async () => {
    await restart('injector');
    expect(nodesOf(await readyReplicas('injector', 2))).toEqual(['node0', 'node1']);
  });

  it('an app on both is answered by an API that is on one, and can be looked into by kubectl', async () => {
    await apply(...app());
    const pods = await appPods();
    expect(pods.every(hasSidecar)).toBe(true);
    expect(nodesOf(pods)).toEqual(['node0', 'node0', 'node1', 'node1']);
    expect(nodesOf(await podsOf(SHOP, 'api'))).toEqual(['node0']);
    for (const { metadata, spec } of pods) {
      const path = `/api/v1/namespaces/${SHOP}/pods/${metadata.name}:8080/proxy/`;
      expect(JSON.parse(await kubectl('get', '--raw', path)), spec.nodeName).toBeTypeOf('object');
    }
    const far = pods.find(({ spec }) => spec.nodeName === SECOND_NODE.name)?.metadata.name ?? '';
    expect(await kubectl('-n', SHOP, 'logs', far, '-c', 'token-sidecar')).toContain('"msg"');
    expect(await kubectl('-n', SHOP, 'exec', far, '-c', 'app', '--', 'node', '-p', '6 * 7')).toBe('42\n');
  });

  it('one drained while pods are created and the app is called: no request fails, each pod has its sidecar', async () => {
    await apply(callers());
    calling = await readyPods(SHOP, 'callers', 2);
    await expectNoFailure(calling, 50);
    const { pods, bare, refusals } = await makePodsDuring(SHOP, 'meanwhile', () =>
      kubectl('drain', SECOND_NODE.name, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=150s'),
    );
    expect({ bare, refusals }).toEqual({ bare: [], refusals: [] });
    expect(pods).toBeGreaterThanOrEqual(20);
    expect(nodesOf(await appPods())).toEqual(Array(APP_PODS).fill('node0'));
    expect(nodesOf(await readyReplicas('injector', 2))).toEqual(['node0', 'node0']);
    await expectNoFailure(calling, 50);
    expect((await totalOf(calling)).failures).toEqual([]);
  });

  it('taken back, it gets its part by the next rollout, and no request fails', async () => {
    await kubectl('uncordon', SECOND_NODE.name);
    await Promise.all([restart('injector'), restartApp()]);
    expect(nodesOf(await readyReplicas('injector', 2))).toEqual(['node0', 'node1']);
    const pods = await eventually('the pods from before are gone', 60, appPods);
    expect(nodesOf(pods)).toEqual(['node0', 'node0', 'node1', 'node1']);
    await expectNoFailure(calling, 50);
    expect((await totalOf(calling)).failures).toEqual([]);
  });

  it('scaled down to one replica and up again, it fails no request', async () => {
    await kubectl('-n', SHOP, 'scale', 'deployment/app', '--replicas=1');
    await readyPods(SHOP, 'app', 1);
    await expectNoFailure(calling, 50);
    await kubectl('-n', SHOP, 'scale', 'deployment/app', `--replicas=${APP_PODS}`);
    await appPods();
    await expectNoFailure(calling, 50);
    expect((await totalOf(calling)).failures).toEqual([]);
  });

  describe('with a broker as a DaemonSet', () => {
    beforeAll(async () => {
      await apply(clientSecret(NAMESPACE, 'first', 'orders-oauth'));
      await installChart({
        'crds.enabled': true,
        'injector.profiles.enabled': true,
        'broker.enabled': true,
        'broker.kind': 'DaemonSet',
        'broker.secrets': ['orders-oauth'],
      });
      await apply(profile());
    });
    afterAll(async () => {
      await kubectl('delete', 'clustertokenprofile', PROFILE);
      await installChart();
    });

    it('each node has a replica, and its sidecars are answered by that one', async () => {
      const brokers = await readyReplicas('broker', 2);
      expect(nodesOf(brokers)).toEqual(['node0', 'node1']);
      await apply(brokeredApp());
      const pods = await readyPods(SHOP, 'brokered', 1);
      await expectNoFailure(pods, 20);
      const given = /^token_sidecar_broker_requests_total\{.*result="given"/;
      const counts = brokers.map(async (broker) => [
        broker.spec.nodeName,
        (await metricOf(broker, given)) ?? 0,
      ]);
      const { node0, node1 } = Object.fromEntries(await Promise.all(counts)) as Record<string, number>;
      expect(node0).toBe(0);
      expect(node1).toBeGreaterThanOrEqual(1);
    });
  });
});

async function restartApp(): Promise<void> {
  await kubectl('-n', SHOP, 'rollout', 'restart', 'deployment/app');
  await kubectl('-n', SHOP, 'rollout', 'status', 'deployment/app', '--timeout=150s');
}
