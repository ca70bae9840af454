import { describe, expect, it, onTestFinished } from 'vitest';
import { createEventRecorder } from '../../../src/injector/cluster/owner-events.ts';
import { createInjectorMetrics } from '../../../src/injector/metrics.ts';
import { inject } from '../../../src/injector/pod/inject.ts';
import { createReplacements } from '../../../src/injector/watched-pods/healing.ts';
import {
  createServedPods,
  startPodController,
  webhookAsOwner,
} from '../../../src/injector/watched-pods/pod-controller.ts';
import { connectKubernetes } from '../../../src/platform/kubernetes/client.ts';
import { Registry } from '../../../src/platform/prometheus.ts';
import { ASKING as COMPLETE, DEFAULTS } from '../../injector/defaults.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { type Failure, FakeKubernetes } from './fake-kubernetes.ts';
import { passUntil } from './passing-time.ts';

const PODS = '/api/v1/pods';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';

const ASKING = { 'token-sidecar.dev/inject': 'true' };
const CLUSTER = { version: { major: 1, minor: 31 } };
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

const REPLICA_SETS = '/apis/apps/v1/namespaces/shop/replicasets';

function owner(name: string, annotations: Readonly<Record<string, string>> = COMPLETE) {
  return {
    metadata: { name, namespace: 'shop', uid: `uid-${name}` },
    spec: { template: { metadata: { annotations }, spec: WITHOUT } },
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
    metadata: { name: 'injector', uid: 'uid-injector' },
    webhooks: [
      {
        name: 'inject',
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['system'] }],
        },
      },
    ],
  });
  fake.put(REPLICA_SETS, owner('web'));
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
      tell: createEventRecorder(api, clock),
      served: createServedPods(api, { configuration: 'injector', clock, log }),
      replacements: createReplacements(api, {
        namespace: 'system',
        verdictOf: (subject, namespace) => inject(subject, namespace, DEFAULTS, CLUSTER),
      }),
      owner: () => webhookAsOwner(api, 'injector'),
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
    for (let index = 0; index < 45; index++) fake.put(PODS, pod(`p${index}`));
    replica('first');
    await counted(45);
    expect(fake.requests.filter((request) => /^GET .*pods\?.*continue=/.test(request))).toHaveLength(4);
  });

  it('are told of fifty owners at once, and of five more a second', async () => {
    const { fake, clock, replica, counted, events } = await start();
    const startedAtMs = clock.monotonicMs();
    for (let index = 0; index < 120; index++) fake.put(PODS, pod(`p${index}`, { owner: `o${index}` }));
    replica('first');
    await counted(120);
    const most = 50 + (5 * (clock.monotonicMs() - startedAtMs)) / 1000;
    expect(events().length).toBeGreaterThanOrEqual(50);
    expect(events().length).toBeLessThanOrEqual(most);
    await passUntil(clock, () => events().length === 120);
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
    await passUntil(clock, () => evictions().length === 1, 5000);
    expect(evictions()).toEqual(['POST /api/v1/namespaces/shop/pods/a/eviction']);
    expect(fake.stored('/api/v1/namespaces/shop/pods/a/eviction')).toMatchObject([
      { kind: 'Eviction', deleteOptions: { preconditions: { uid: 'uid-a' } } },
    ]);
    fake.delete(PODS, 'a');
    await clock.advance(60_000);
    expect(evictions()).toHaveLength(1);
    fake.put(PODS, pod('a2', { spec: WITH_SIDECAR }));
    await passUntil(clock, () => evictions().length === 2, 5000);
    expect(evictions()[1]).toBe('POST /api/v1/namespaces/shop/pods/b/eviction');
  });

  it('leaves an owner alone whose new pod has no sidecar either', async () => {
    const { fake, clock, replica, evictions } = await start({ heals: true });
    fake.put(PODS, pod('a'));
    replica('first');
    await passUntil(clock, () => evictions().length === 1, 5000);
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
    await passUntil(clock, () => evictions().length === 1, 5000);
    await clock.advance(20_000);
    expect(evictions()).toHaveLength(1);
    await passUntil(clock, () => evictions().length === 2, 5000);
  });

  it.each([
    ['does not ask', {}, 'does not ask'],
    ['is refused', { ...COMPLETE, 'token-sidecar.dev/native-sidecar': 'maybe' }, 'is refused'],
  ])('leaves pods alone whose owner’s template %s, and says so', async (_, annotations, said) => {
    const { fake, clock, replica, evictions, events } = await start({ heals: true });
    fake.put(REPLICA_SETS, owner('web', annotations));
    fake.put(PODS, pod('a'));
    replica('first');
    await passUntil(clock, () => events().length === 1);
    const looked = () => fake.requests.filter((request) => request === `GET ${REPLICA_SETS}/web`).length;
    await passUntil(clock, () => looked() === 3, 5000);
    expect(evictions()).toEqual([]);
    expect(events()[0]?.['message']).toContain(said);
    expect(events()[0]?.['message']).not.toContain('restart');
  });

  it('evicts nothing while the webhook does not answer', async () => {
    const { fake, clock, replica, evictions } = await start({ heals: true });
    fake.webhookAnswers = false;
    fake.put(PODS, pod('a'));
    replica('first');
    await passUntil(clock, () => fake.requests.some((request) => request.includes('dryRun')));
    fake.webhookAnswers = true;
    expect(evictions()).toEqual([]);
    await passUntil(clock, () => evictions().length === 1, 5000);
  });

  it('says once that an owner is given up', async () => {
    const { fake, clock, replica, evictions, events } = await start({ heals: true });
    fake.put(PODS, pod('a'));
    replica('first');
    await passUntil(clock, () => evictions().length === 1, 5000);
    fake.delete(PODS, 'a');
    fake.put(PODS, pod('a2'));
    const told = () => events().filter(({ message }) => String(message).includes('not evicted again'));
    await passUntil(clock, () => told().length === 1, 5000);
  });

  it.each<[string, Failure]>([
    ['is broken off', 'disconnect'],
    ['is a failure of the server', { status: 500 }],
  ])('waits for the replacement where the answer %s', async (_, failure) => {
    const { fake, clock, replica, evictions } = await start({ heals: true });
    fake.put(REPLICA_SETS, owner('other'));
    fake.failNext(/eviction$/, failure);
    fake.put(PODS, pod('a'));
    fake.put(PODS, pod('b', { owner: 'other' }));
    replica('first');
    await passUntil(clock, () => evictions().length === 1, 5000);
    const since = clock.monotonicMs();
    await passUntil(clock, () => evictions().length === 2, 5000);
    expect(clock.monotonicMs() - since).toBeGreaterThanOrEqual(300_000);
  });

  it('begins five minutes after the replica has become the leader', async () => {
    const { fake, clock, replica, evictions } = await start({ heals: true });
    fake.put(PODS, pod('a'));
    const since = clock.monotonicMs();
    replica('first');
    await passUntil(clock, () => evictions().length === 1, 5000);
    expect(clock.monotonicMs() - since).toBeGreaterThanOrEqual(300_000);
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

it('a failure that changes is told again', async () => {
  const { fake, clock, replica, events } = await start();
  const failing = (message: string) =>
    pod('hangs', {
      spec: WITH_SIDECAR,
      status: {
        initContainerStatuses: [
          { name: 'token-sidecar', lastState: { terminated: { exitCode: 77, message } } },
        ],
      },
    });
  fake.put(PODS, failing('first'));
  fake.failNext(/^POST .*events$/, { status: 500 });
  replica('first');
  await passUntil(clock, () => events().length === 1);
  fake.put(PODS, failing('second'));
  await passUntil(clock, () => events().length === 2);
  expect(events()[1]?.['message']).toContain('second');
});

it('the Lease that the replica makes goes with the release', async () => {
  const { fake, clock, replica } = await start();
  const lease = '/apis/coordination.k8s.io/v1/namespaces/system/leases/pods';
  replica('first');
  await passUntil(clock, () => fake.get(lease) !== undefined);
  expect(fake.get(lease)?.metadata['ownerReferences']).toMatchObject([{ uid: 'uid-injector' }]);
});
