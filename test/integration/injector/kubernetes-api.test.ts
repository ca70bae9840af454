import { expect, it } from 'vitest';
import { ASKING } from '../../injector/defaults.ts';
import { reviewOf } from '../../injector/review.ts';
import { FakeKubernetes } from './fake-kubernetes.ts';
import { apiServer, HOST, mountCertificate, runInjector } from './running-injector.ts';

const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'shop-7', uid: 'u-1', controller: true };
const POD = {
  metadata: { generateName: 'shop-7-', annotations: ASKING, ownerReferences: [OWNER] },
  spec: { containers: [{ name: 'app' }] },
};

async function start(
  prepare: (fake: FakeKubernetes) => void = () => undefined,
  args: readonly string[] = [],
) {
  const fake = await FakeKubernetes.start();
  prepare(fake);
  const mounted = await mountCertificate();
  const ca = await mounted.issue();
  const api = ['--kubernetes-api', 'true', '--kubeconfig', await fake.kubeconfig()];
  const running = runInjector([...mounted.settings, ...api, ...args]);
  const client = apiServer(await running.port(), ca);
  return {
    fake,
    running,
    async review(request: Readonly<Record<string, unknown>> = {}) {
      return JSON.parse((await client.call('/mutate', reviewOf(POD, request))).text).response;
    },
    async ready(): Promise<void> {
      while ((await running.probe('/readyz')).status !== 200)
        await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

it.each([
  ['29', 'native'],
  ['29+', 'native'],
  ['28', 'classic'],
])('minor version %s: sidecars are %s', async (minor, reason) => {
  const { review, ready } = await start((fake) => {
    fake.minor = minor;
  });
  await ready();
  expect(await review()).toMatchObject({ auditAnnotations: { reason } });
});

it('is not ready before the version is known, because the wrong kind of sidecar would hang the pod', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { running, ready } = await start((fake) => fake.failNext(/version/, { until: promise }));
  expect(await running.probe('/readyz')).toMatchObject({
    status: 503,
    text: expect.stringContaining('"part": "cluster"'),
  });
  resolve();
  await ready();
});

it('need not know the version when the kind of sidecar is set', async () => {
  const { running } = await start(
    (fake) => fake.failNext(/version/, { status: 500 }),
    ['--default-native-sidecar', 'true'],
  );
  expect((await running.probe('/readyz')).status).toBe(200);
});

it('warns of a missing Secret, and makes one Event on the owner', async () => {
  const { review, ready, fake } = await start(undefined, ['--check-secrets', 'true']);
  await ready();
  const [first] = await Promise.all([review({ namespace: 'team' }), review({ namespace: 'team' })]);
  expect(first.warnings).toEqual(['the Secret shop-oauth does not exist in team: the pod will wait for it']);
  const events = () => fake.requests.filter((request) => request === 'POST /api/v1/namespaces/team/events');
  await fake.until(() => events().length > 0);
  expect(events()).toHaveLength(1);
});

it('asks for the Secret’s metadata and never for its values', async () => {
  const { review, ready, fake } = await start(
    (server) => server.put('/api/v1/namespaces/default/secrets', { metadata: { name: 'shop-oauth' } }),
    ['--check-secrets', 'true'],
  );
  await ready();
  expect(await review()).not.toHaveProperty('warnings');
  await review();
  const asked = fake.requests.flatMap((request, index) =>
    request.includes('/secrets/') ? [fake.accepted[index]] : [],
  );
  expect(asked).toEqual([expect.stringContaining('as=PartialObjectMetadata')]);
});

it.each([{ status: 403 }, { status: 429 }, 'disconnect'] as const)(
  'does not hold up a pod when the API fails (%j)',
  async (failure) => {
    const { review, ready, running } = await start(
      (fake) => fake.failNext(/secrets/, failure),
      ['--check-secrets', 'true'],
    );
    await ready();
    const response = await review();
    expect([response.allowed, response.warnings]).toEqual([true, undefined]);
    await running.logged('whether a Secret exists could not be asked');
  },
);

it('does not wait for a slow API', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { review, ready } = await start(
    (fake) => fake.failNext(/secrets/, { until: promise }),
    ['--check-secrets', 'true'],
  );
  await ready();
  const startedAt = performance.now();
  expect(await review()).toMatchObject({ allowed: true });
  expect(performance.now() - startedAt).toBeLessThan(4000);
  resolve();
});

it('makes its own certificate, and serves once the webhook trusts it', async () => {
  const fake = await FakeKubernetes.start();
  const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
  fake.put(configurations, { metadata: { name: 'hook' }, webhooks: [{ name: 'inject', clientConfig: {} }] });
  const bundle = (): string | undefined => {
    const webhooks = fake.get(`${configurations}/hook`)?.['webhooks'] as {
      clientConfig: { caBundle?: string };
    }[];
    return webhooks[0]?.clientConfig.caBundle;
  };
  const running = runInjector([
    ...['--kubernetes-api', 'true', '--kubeconfig', await fake.kubeconfig('system')],
    ...['--certificate-secret', 'certificates', '--service-name', HOST.split('.')[0] as string],
    ...['--webhook-configuration', 'hook'],
  ]);
  await running.logged('certificate loaded');
  await fake.until(() => bundle() !== undefined);
  const client = apiServer(await running.port(), Buffer.from(bundle() ?? '', 'base64').toString());
  expect(await client.call('/mutate', reviewOf(POD))).toMatchObject({ status: 200 });
  running.stop();
  expect(await running.status).toBe(0);
  const lease = fake.get('/apis/coordination.k8s.io/v1/namespaces/system/leases/certificates');
  expect(lease).toMatchObject({ spec: { holderIdentity: '' } });
});
