import { describe, expect, it, onTestFinished } from 'vitest';
import { connectKubernetes } from '../../../src/injector/kubernetes/client.ts';
import { createEventTeller } from '../../../src/injector/kubernetes/events.ts';
import { createInjectorMetrics } from '../../../src/injector/metrics.ts';
import { startPodController } from '../../../src/injector/watched-pods/pod-controller.ts';
import { createServedPods } from '../../../src/injector/watched-pods/served-pods.ts';
import { Registry } from '../../../src/prometheus.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { FakeKubernetes } from './fake-kubernetes.ts';
import { passUntil } from './passing-time.ts';

const PODS = '/api/v1/pods';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';

const ASKING = { 'token-sidecar.dev/inject': 'true' };
const WITH_SIDECAR = { initContainers: [{ name: 'token-sidecar' }], containers: [{ name: 'app' }] };
const WITHOUT = { containers: [{ name: 'app' }] };

interface PodOptions {
  readonly owner?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly spec?: object;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly status?: object;
}

function pod(name: string, options: PodOptions = {}) {
  const { owner = 'web', kind = 'ReplicaSet', namespace = 'shop', spec = WITHOUT, status = {} } = options;
  return {
    metadata: {
      name,
      namespace,
      uid: `uid-${name}`,
      annotations: options.annotations ?? ASKING,
      ownerReferences: [{ apiVersion: 'apps/v1', kind, name: owner, uid: `uid-${owner}`, controller: true }],
    },
    spec,
    status,
  };
}

async function start({ heals = false } = {}) {
  const fake = await FakeKubernetes.start();
  fake.put('/api/v1/namespaces', { metadata: { name: 'shop' } });
  fake.put('/api/v1/namespaces', {
    metadata: { name: 'off', labels: { 'token-sidecar.dev/injection': 'disabled' } },
  });
  fake.put('/api/v1/namespaces', {
    metadata: { name: 'system', labels: { 'kubernetes.io/metadata.name': 'system' } },
  });
  fake.put(CONFIGURATIONS, {
    metadata: { name: 'injector' },
    webhooks: [
      {
        name: 'inject',
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['system'] }],
        },
      },
    ],
  });
  const clock = new ManualClock();
  const kubeconfig = await fake.kubeconfig('system');
  const registry = new Registry();
  const metrics = createInjectorMetrics(registry);

  function replica(identity: string) {
    const api = connectKubernetes(kubeconfig, clock);
    const { log } = captureLog();
    const controller = startPodController(api, {
      namespace: 'system',
      leaseName: 'pods',
      identity,
      heals,
      tell: createEventTeller(api, clock),
      served: createServedPods(api, { configuration: 'injector', clock, log }),
      clock,
      random: () => 0.5,
      metrics,
      log,
    });
    let closed: Promise<void> | undefined;
    const close = (): Promise<void> => (closed ??= controller.close());
    onTestFinished(close);
    return { close };
  }

  let count = -1;
  return {
    fake,
    clock,
    replica,
    /** Pods without their sidecar, as the metric has it. */
    counted: async (expected: number) => {
      await passUntil(clock, () => {
        void registry
          .getSingleMetric('token_sidecar_injector_pods_without_sidecar')
          ?.get()
          .then(({ values }) => {
            count = values[0]?.value ?? -1;
          });
        return count === expected;
      });
    },
    events: () =>
      fake.stored('/api/v1/namespaces/shop/events').concat(fake.stored('/api/v1/namespaces/system/events')),
    evictions: () => fake.requests.filter((request) => request.endsWith('/eviction')),
  };
}

describe('pods that lack the sidecar they ask for', () => {
  it('are counted, and their owner is told once', async () => {
    const { fake, replica, counted, events } = await start();
    for (const name of ['a', 'b', 'c']) fake.put(PODS, pod(name));
    fake.put(PODS, pod('injected', { spec: WITH_SIDECAR }));
    fake.put(PODS, pod('plain', { annotations: {} }));
    fake.put(PODS, pod('declining', { annotations: { 'token-sidecar.dev/inject': 'false' } }));
    replica('first');
    await counted(3);
    expect(events()).toMatchObject([
      {
        involvedObject: { kind: 'ReplicaSet', name: 'web', uid: 'uid-web' },
        reason: 'TokenSidecarNotInjected',
        message: expect.stringContaining('pod a asks for the sidecar and was made without it'),
      },
    ]);
  });

  it('are found when they are made later, and forgotten when they are gone', async () => {
    const { fake, replica, counted } = await start();
    fake.put(PODS, pod('a'));
    replica('first');
    await counted(1);
    fake.put(PODS, pod('b'));
    await counted(2);
    fake.delete(PODS, 'a');
    fake.put(PODS, { ...pod('b'), metadata: { ...pod('b').metadata, deletionTimestamp: 'now' } });
    await counted(0);
  });

  it('are all found where they come in several pages', async () => {
    const { fake, replica, counted } = await start();
    for (let index = 0; index < 450; index++) fake.put(PODS, pod(`p${index}`));
    replica('first');
    await counted(450);
    expect(fake.requests.filter((request) => /^GET .*pods\?.*continue=/.test(request))).toHaveLength(2);
  });

  it('are not counted where the webhook is not asked, which is said where nobody has switched it off', async () => {
    const { fake, replica, counted, events } = await start();
    fake.put(PODS, pod('off', { namespace: 'off', owner: 'off' }));
    fake.put(PODS, pod('own', { namespace: 'system', owner: 'own' }));
    fake.put(PODS, pod('a'));
    replica('first');
    await counted(1);
    expect(events().map(({ message }) => message)).toEqual([
      expect.stringContaining('pod a asks'),
      expect.stringContaining('the injector does not serve it'),
    ]);
  });

  it('are looked for by one replica, and by the next when it leaves', async () => {
    const { fake, clock, replica, counted } = await start();
    fake.put(PODS, pod('a'));
    const lists = (): number =>
      fake.requests.filter((request) => /^GET \/api\/v1\/pods\?(?!.*watch)/.test(request)).length;
    const first = replica('first');
    await counted(1);
    replica('second');
    await clock.advance(20_000);
    expect(lists()).toBe(1);
    await first.close();
    fake.put(PODS, pod('b'));
    await counted(2);
    expect(lists()).toBe(2);
  });

  it('stay where healing is off', async () => {
    const { fake, clock, replica, counted, evictions } = await start();
    fake.put(PODS, pod('a'));
    replica('first');
    await counted(1);
    await clock.advance(60_000);
    expect(evictions()).toEqual([]);
  });
});

describe('healing', () => {
  it('evicts one, and the next once a pod with the sidecar has come in its place', async () => {
    const { fake, clock, replica, evictions } = await start({ heals: true });
    fake.put(PODS, pod('a'));
    fake.put(PODS, pod('b'));
    replica('first');
    await passUntil(clock, () => evictions().length === 1);
    expect(evictions()).toEqual(['POST /api/v1/namespaces/shop/pods/a/eviction']);
    expect(fake.stored('/api/v1/namespaces/shop/pods/a/eviction')).toMatchObject([
      { kind: 'Eviction', deleteOptions: { preconditions: { uid: 'uid-a' } } },
    ]);
    fake.delete(PODS, 'a');
    await clock.advance(60_000);
    expect(evictions()).toHaveLength(1);
    fake.put(PODS, pod('a2', { spec: WITH_SIDECAR }));
    await passUntil(clock, () => evictions().length === 2);
    expect(evictions()[1]).toBe('POST /api/v1/namespaces/shop/pods/b/eviction');
  });

  it('leaves an owner alone whose new pod has no sidecar either', async () => {
    const { fake, clock, replica, evictions } = await start({ heals: true });
    fake.put(PODS, pod('a'));
    replica('first');
    await passUntil(clock, () => evictions().length === 1);
    fake.delete(PODS, 'a');
    fake.put(PODS, pod('a2'));
    await clock.advance(30 * 60_000);
    expect(evictions()).toHaveLength(1);
  });

  it('waits for a PodDisruptionBudget', async () => {
    const { fake, clock, replica, evictions } = await start({ heals: true });
    fake.failNext(/eviction$/, { status: 429, retryAfter: '10' });
    fake.put(PODS, pod('a'));
    replica('first');
    await passUntil(clock, () => evictions().length === 1);
    await clock.advance(20_000);
    expect(evictions()).toHaveLength(1);
    await passUntil(clock, () => evictions().length === 2);
  });

  it('leaves Jobs their work', async () => {
    const { fake, clock, replica, counted, evictions } = await start({ heals: true });
    fake.put(PODS, pod('a', { kind: 'Job' }));
    replica('first');
    await counted(1);
    await clock.advance(60_000);
    expect(evictions()).toEqual([]);
  });
});

it('the owner of a pod whose sidecar gets no token is told what the sidecar said', async () => {
  const { fake, clock, replica, events } = await start();
  const terminated = { exitCode: 77, message: 'credential default: https://sso rejected the client' };
  fake.put(
    PODS,
    pod('hangs', {
      spec: WITH_SIDECAR,
      status: { initContainerStatuses: [{ name: 'token-sidecar', lastState: { terminated } }] },
    }),
  );
  replica('first');
  await passUntil(clock, () => events().length === 1);
  expect(events()).toMatchObject([
    {
      involvedObject: { name: 'web' },
      reason: 'TokenSidecarNoToken',
      message: 'the sidecar of pod hangs gets no token: credential default: https://sso rejected the client',
    },
  ]);
});
