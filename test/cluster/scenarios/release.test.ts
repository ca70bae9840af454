import { expect, it } from 'vitest';
import { apply, get, helm, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import {
  checkedAfter,
  deleteNamespace,
  installChart,
  NAMESPACE,
  provideRelease,
  RELEASE,
} from '../support/release.ts';
import { hasPolicies, inCluster, useShop } from '../support/scenario.ts';
import { makePodsDuring } from '../support/unscheduled-pods.ts';
import {
  askingForSidecar,
  callingTemplate,
  callsOn,
  isReady,
  type Pod,
  readyPods,
} from '../support/workload.ts';

const SHOP = 'release';

/** Kinds of which a chart may make objects outside its namespace. */
const CLUSTER_KINDS = [
  'clusterroles',
  'clusterrolebindings',
  'mutatingwebhookconfigurations',
  'validatingwebhookconfigurations',
  ...(hasPolicies ? ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'] : []),
];

async function releasePods(): Promise<readonly Pod[]> {
  const { items } = await get<{ items: Pod[] }>('pods', '-n', NAMESPACE);
  return items.filter(
    ({ metadata, status }) =>
      status.phase === 'Running' &&
      metadata.deletionTimestamp === undefined &&
      metadata.name.startsWith(RELEASE),
  );
}

const names = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.name).sort();

inCluster('a release', () => {
  useShop(SHOP);

  it('is ready when helm says so, in a namespace that enforces the restricted standard', async () => {
    const pods = await releasePods();
    expect(pods.length).toBeGreaterThanOrEqual(3);
    expect(pods.every(isReady)).toBe(true);
  });

  it('upgraded with nothing changed but its check, which runs, keeps its pods and its certificate', async () => {
    const before = names(await releasePods());
    const bundle = await caBundle();
    const checks = await checksThatCompleted();
    await installChart(checkedAfter('post-install', 'post-upgrade'));
    expect(await checksThatCompleted()).toBe(checks + 1);
    expect(names(await releasePods())).toEqual(before);
    expect(await caBundle()).toBe(bundle);
  });

  it('upgraded with a value changed, rolls without a failed request or a pod without a sidecar', async () => {
    await apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'app', namespace: SHOP },
      spec: {
        selector: { matchLabels: { app: 'app' } },
        template: callingTemplate('app', askingForSidecar(SHOP)),
      },
    });
    const [pod] = await readyPods(SHOP, 'app', 1);
    const before = names(await releasePods());
    await installChart({ 'injector.logLevel': 'debug' });
    const after = names(await releasePods());
    expect(after.filter((name) => name.includes('injector') && before.includes(name))).toEqual([]);
    expect(pod && (await callsOn(pod, 20))).toMatchObject({ failed: 0 });
  });

  it('rolled back, is as it was, and no pod that is made meanwhile is refused or lacks its sidecar', async () => {
    const { pods, bare, refusals } = await makePodsDuring(SHOP, 'rolled-back', () => rollBack());
    expect({ bare, refusals }).toEqual({ bare: [], refusals: [] });
    expect(pods).toBeGreaterThanOrEqual(20);
    expect(await injector()).not.toContain('"debug"');
  });

  it('uninstalled, leaves nothing behind', async () => {
    await helm('uninstall', RELEASE, '--namespace', NAMESPACE, '--wait');
    for (const kind of CLUSTER_KINDS) {
      const left = await kubectl('get', kind, '-o', 'name');
      expect(left.split('\n').filter((name) => name.includes(RELEASE))).toEqual([]);
    }
    const left = await eventually('the objects of the release are gone', 120, async () => {
      const objects = (
        await kubectl(
          'get',
          'all,secrets,configmaps,leases,roles,rolebindings',
          '-n',
          NAMESPACE,
          '-o',
          'name',
        )
      )
        .split('\n')
        .filter((name) => name.includes(RELEASE));
      if (objects.length > 0) throw new Error(objects.join(', '));
      return objects;
    });
    expect(left).toEqual([]);
    await deleteNamespace(NAMESPACE);
    await provideRelease();
  }, 420_000);

  it.runIf(hasPolicies)(
    'rolled back to its first revision, which knew no CA bundle, refuses pods with the reason until there is one again',
    async () => {
      const bundle = await caBundle();
      await installChart({ 'injector.logLevel': 'debug' });
      const { bare, refusals } = await makePodsDuring(SHOP, 'rolled-to-first', () => rollBack('1'));
      expect(bare).toEqual([]);
      for (const refusal of refusals)
        expect(refusal).toMatch(/asks for the token sidecar .* did not get it/s);
      expect(await caBundle()).toBe(bundle);
      expect(await injector()).not.toContain('"debug"');
    },
  );
});

/** To the revision before, or to the one named. */
function rollBack(...revision: readonly string[]): Promise<string> {
  return helm(
    ...(['rollback', RELEASE, ...revision, '--namespace', NAMESPACE, '--wait'] as const),
    ...['--timeout', '150s'],
  );
}

/** By the events of its Jobs, which outlive them. */
async function checksThatCompleted(): Promise<number> {
  const { items } = await get<{ items: { involvedObject: { name: string }; reason: string }[] }>(
    'events',
    '-n',
    NAMESPACE,
  );
  return items.filter(
    ({ involvedObject, reason }) =>
      involvedObject.name === `${RELEASE}-startup-check` && reason === 'Completed',
  ).length;
}

function injector(): Promise<string> {
  return kubectl('-n', NAMESPACE, 'get', 'deployment', `${RELEASE}-injector`, '-o', 'json');
}

async function caBundle(): Promise<string> {
  const { items } = await get<{ items: { webhooks: { clientConfig: { caBundle: string } }[] }[] }>(
    'mutatingwebhookconfigurations',
  );
  return items[0]?.webhooks[0]?.clientConfig.caBundle ?? '';
}
