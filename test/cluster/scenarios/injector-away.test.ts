import { afterAll, expect, it } from 'vitest';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { killReplica, readyReplicas, scale } from '../support/faults.ts';
import { MISSED, makeMissedPods, missedPodsTold } from '../support/missed-pods.ts';
import { installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { hasPolicies, inCluster, useShop } from '../support/scenario.ts';
import { deletePods, makePodsDuring, NO_NODE, unscheduledPod } from '../support/unscheduled-pods.ts';
import {
  askingForSidecar,
  callingTemplate,
  hasSidecar,
  type Pod,
  podsOf,
  readyPods,
} from '../support/workload.ts';

const SHOP = 'injector-away';
const INJECTOR = `deployment/${RELEASE}-injector`;

inCluster('the injector', () => {
  useShop(SHOP);
  afterAll(() => installChart());

  it('admits 500 pods at once, each with its sidecar', async () => {
    const template = callingTemplate('many', askingForSidecar(SHOP), {}, NO_NODE);
    const selector = { matchLabels: { app: 'many' } };
    const metadata = { name: 'many', namespace: SHOP };
    // Its controller asks for many at once, where kubectl asks for one after another.
    await apply({
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata,
      spec: { replicas: 500, selector, template },
    });
    const pods = await eventually('there are as many pods', 180, async () => {
      const made = await podsOf(SHOP, 'many');
      if (made.length < 500) throw new Error(`${made.length} pods`);
      return made;
    });
    expect(pods.length).toBe(500);
    expect(pods.filter((pod) => !hasSidecar(pod))).toEqual([]);
    // It asks again for what was refused, and says so.
    const ofIt = 'reason=FailedCreate,involvedObject.kind=ReplicaSet,involvedObject.name=many';
    const refused = await get<{ items: { message: string }[] }>(
      'events',
      '-n',
      SHOP,
      '--field-selector',
      ofIt,
    );
    expect(refused.items.map(({ message }) => message)).toEqual([]);
    await kubectl('-n', SHOP, 'delete', 'replicaset', 'many', '--cascade=orphan');
    await deletePods(SHOP, 'many');
  });

  it('rolled while pods are created, loses none', async () => {
    const { pods, bare, refusals } = await makePodsDuring(SHOP, 'rolled', async () => {
      await kubectl('-n', NAMESPACE, 'rollout', 'restart', INJECTOR);
      await kubectl('-n', NAMESPACE, 'rollout', 'status', INJECTOR, '--timeout=120s');
    });
    expect({ bare, refusals }).toEqual({ bare: [], refusals: [] });
    expect(pods).toBeGreaterThanOrEqual(20);
  });

  it('scaled to one while pods are created, and back, loses none', async () => {
    const { pods, bare, refusals } = await makePodsDuring(SHOP, 'scaled', async () => {
      await scale('injector', 1);
      await readyReplicas('injector', 1);
    });
    expect({ bare, refusals }).toEqual({ bare: [], refusals: [] });
    expect(pods).toBeGreaterThanOrEqual(20);
    await scale('injector', 2);
    await readyReplicas('injector', 2);
  });

  it.runIf(hasPolicies)(
    'killed in one of its replicas while pods are created: none is made without its sidecar',
    async () => {
      const [replica] = await readyReplicas('injector', 2);
      const { pods, bare, refusals } = await makePodsDuring(SHOP, 'killed', async () => {
        await killReplica(replica as Pod);
        await readyReplicas('injector', 2);
      });
      expect(bare).toEqual([]);
      // One that the replica was asked for is refused, as nobody answered, and made when it is asked for again.
      for (const refusal of refusals)
        expect(refusal).toMatch(/asks for the token sidecar .* did not get it/s);
      expect(pods).toBeGreaterThanOrEqual(20);
    },
  );

  it.runIf(hasPolicies)(
    'away: pods that ask for the sidecar are refused with the reason, others are untouched',
    async () => {
      await installChart();
      await kubectl('-n', NAMESPACE, 'scale', INJECTOR, '--replicas=0');
      await eventually('the injector is gone', 60, async () => {
        const pods = await kubectl('-n', NAMESPACE, 'get', 'pods', '-o', 'name');
        return !pods.includes('injector');
      });
      const refusal = await eventually('a pod is refused', 30, () =>
        apply(unscheduledPod(SHOP, 'asking', 'asking')).then(
          () => kubectl('-n', SHOP, 'delete', 'pod', 'asking', '--force').then(() => undefined),
          (error: Error) => error.message,
        ),
      );
      expect(refusal).toMatch(/asks for the token sidecar .* and did not get it/s);
      await apply({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'plain', namespace: SHOP },
        spec: { selector: { matchLabels: { app: 'plain' } }, template: callingTemplate('plain', {}) },
      });
      await readyPods(SHOP, 'plain', 1);
      await kubectl('-n', NAMESPACE, 'scale', INJECTOR, '--replicas=2');
      await kubectl('-n', NAMESPACE, 'rollout', 'status', INJECTOR, '--timeout=120s');
      await eventually('the pod is admitted', 30, () => apply(unscheduledPod(SHOP, 'asking', 'asking')));
      expect((await podsOf(SHOP, 'asking')).every(hasSidecar)).toBe(true);
    },
  );

  it('away, without enforcement: pods made meanwhile are named by an Event on their owner', async () => {
    await installChart({ 'injector.webhook.enforce': false });
    await makeMissedPods(SHOP);
    await installChart({ 'injector.webhook.enforce': false });
    await missedPodsTold(SHOP);
    expect((await podsOf(SHOP, MISSED)).some(hasSidecar)).toBe(false);
  }, 360_000);
});
