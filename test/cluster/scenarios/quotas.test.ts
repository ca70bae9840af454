import { afterEach, expect, it } from 'vitest';
import { apply, create, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { NO_NODE } from '../support/unscheduled-pods.ts';
import {
  type Annotations,
  askingForSidecar,
  callingTemplate,
  callsOn,
  container,
  type Pod,
  readyPods,
} from '../support/workload.ts';

const SHOP = 'quotas';

interface Resources {
  readonly requests?: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, string>>;
}

interface Quota {
  readonly status?: { readonly used?: Readonly<Record<string, string>> };
}

inCluster('in a namespace with limits of its own', () => {
  useShop(SHOP);
  afterEach(() => kubectl('-n', SHOP, 'delete', 'deployments,resourcequotas,limitranges', '-l', 'of=quotas'));

  const labels = { of: 'quotas' };
  const template = (app: string, more: Annotations, resources: Resources, spec: object = {}): object => {
    const containers = [{ ...container('caller'), resources }];
    return callingTemplate(app, askingForSidecar(SHOP, more), {}, { containers, ...spec });
  };

  const deploy = (app: string, more: Annotations, resources: Resources): Promise<string> =>
    apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: app, namespace: SHOP, labels },
      spec: { selector: { matchLabels: { app } }, template: template(app, more, resources) },
    });

  const limit = (kind: 'ResourceQuota' | 'LimitRange', spec: object): Promise<string> =>
    apply({ apiVersion: 'v1', kind, metadata: { name: 'limits', namespace: SHOP, labels }, spec });

  /** What the namespace uses of its quota, once the controller has counted it. */
  const used = (): Promise<Readonly<Record<string, string>>> =>
    eventually('the quota has been counted', 30, async () => {
      const { status } = await get<Quota>('resourcequota', 'limits', '-n', SHOP);
      return status?.used;
    });

  /** A pod as it would be admitted. */
  const tryPod = (more: Annotations, resources: Resources): Promise<Pod> =>
    create<Pod>(
      {
        apiVersion: 'v1',
        kind: 'Pod',
        ...template('tried', more, resources, NO_NODE),
        metadata: { name: 'tried', namespace: SHOP, annotations: askingForSidecar(SHOP, more) },
      },
      '--dry-run=server',
    );

  const sidecarResources = (pod: Pod): Resources | undefined => {
    const containers = (pod.spec.initContainers ?? []) as readonly { name: string; resources: Resources }[];
    return containers.find(({ name }) => name === 'token-sidecar')?.resources;
  };

  it('a quota counts the sidecar, and the pod runs', async () => {
    await limit('ResourceQuota', {
      // Room for the protected API too, which is in the same namespace.
      hard: { 'requests.cpu': '1', 'requests.memory': '512Mi', 'limits.memory': '1Gi' },
    });
    const before = await used();
    await deploy(
      'counted',
      {},
      {
        requests: { cpu: '10m', memory: '16Mi' },
        limits: { memory: '64Mi' },
      },
    );
    const [pod] = await readyPods(SHOP, 'counted', 1);
    expect(pod && (await callsOn(pod, 20))).toMatchObject({ failed: 0 });
    const after = await used();
    const counted = (name: string): number => quantity(after[name]) - quantity(before[name]);
    // Of the app and of the sidecar.
    expect(counted('requests.cpu')).toBeCloseTo(0.01 + 0.01);
    expect(counted('requests.memory')).toBe((16 + 48) * 2 ** 20);
    expect(counted('limits.memory')).toBe((64 + 128) * 2 ** 20);
  });

  it('a quota on CPU limits refuses the pod, names the sidecar, and an annotation mends it', async () => {
    await limit('ResourceQuota', { hard: { 'limits.cpu': '1' } });
    await used();
    const resources = { limits: { cpu: '100m', memory: '64Mi' } };
    await deploy('unlimited', {}, resources);
    await eventually('the ReplicaSet says why there is no pod', 60, async () => {
      const events = await kubectl(
        ...(['-n', SHOP, 'get', 'events', '--field-selector', 'reason=FailedCreate'] as const),
        ...['-o', 'jsonpath={.items[*].message}'],
      );
      return /failed quota: limits: must specify limits\.cpu for: token-sidecar/.test(events);
    });
    await deploy('unlimited', { 'token-sidecar.dev/cpu-limit': '200m' }, resources);
    const [pod] = await readyPods(SHOP, 'unlimited', 1);
    expect(pod && (await callsOn(pod, 20))).toMatchObject({ failed: 0 });
    expect((await used())['limits.cpu']).toBe('300m');
  });

  it('defaults of a LimitRange fill in what the sidecar leaves open, and nothing else', async () => {
    await limit('ResourceQuota', { hard: { 'limits.cpu': '1', 'limits.memory': '1Gi' } });
    await limit('LimitRange', {
      limits: [
        {
          type: 'Container',
          default: { cpu: '250m', memory: '32Mi' },
          defaultRequest: { cpu: '5m', memory: '8Mi' },
        },
      ],
    });
    await used();
    const pod = await eventually('the LimitRange is known', 30, async () => {
      const tried = await tryPod({}, {}).catch(() => undefined);
      return tried !== undefined && sidecarResources(tried)?.limits?.['cpu'] !== undefined && tried;
    });
    expect(sidecarResources(pod)).toEqual({
      requests: { cpu: '10m', memory: '48Mi' },
      limits: { cpu: '250m', memory: '128Mi' },
    });
  });

  it('bounds of a LimitRange refuse the pod with the figure, and an annotation mends it', async () => {
    await limit('LimitRange', {
      limits: [{ type: 'Container', min: { memory: '64Mi' }, max: { memory: '100Mi' } }],
    });
    const resources = { requests: { memory: '64Mi' }, limits: { memory: '64Mi' } };
    const refusal = await eventually('the LimitRange is known', 30, () =>
      tryPod({}, resources).then(
        () => undefined,
        ({ message }: Error) => message,
      ),
    );
    expect(refusal).toContain('minimum memory usage per Container is 64Mi, but request is 48Mi');
    expect(refusal).toContain('maximum memory usage per Container is 100Mi, but limit is 128Mi');
    const mended = { 'token-sidecar.dev/memory-request': '64Mi', 'token-sidecar.dev/memory-limit': '96Mi' };
    expect(sidecarResources(await tryPod(mended, resources))).toMatchObject({
      requests: { memory: '64Mi' },
      limits: { memory: '96Mi' },
    });
  });
});

/** The number that a quantity stands for, such as 0.01 of `10m`. */
function quantity(text = '0'): number {
  const [, digits = '', unit = ''] = /^(\d+)(m|Ki|Mi|Gi|)$/.exec(text) ?? [];
  const factor = { m: 0.001, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, '': 1 }[unit];
  if (digits === '' || factor === undefined) throw new Error(`${text} is not a quantity that is known here`);
  return Number(digits) * factor;
}
