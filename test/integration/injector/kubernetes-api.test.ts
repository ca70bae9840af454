import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ASKING } from '../../injector/defaults.ts';
import { reviewOf } from '../../injector/review.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { until } from '../../support/until.ts';
import { FakeKubernetes } from './fake-kubernetes.ts';
import { apiServer, HOST, mountCertificate, runInjector } from './running-injector.ts';

async function mountFile(name: string, text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-file-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, name), text);
  return join(directory, name);
}

const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'shop-7', uid: 'u-1', controller: true };
const POD = {
  metadata: { generateName: 'shop-7-', annotations: ASKING, ownerReferences: [OWNER] },
  spec: { containers: [{ name: 'app' }] },
};

const REPLICA_SETS = '/apis/apps/v1/namespaces/team/replicasets';
/** What made the pod, as the API has it. */
const REPLICA_SET = {
  metadata: { name: 'shop-7', uid: 'u-1' },
  spec: { template: { metadata: { annotations: ASKING }, spec: POD.spec } },
};

async function start(
  prepare: (fake: FakeKubernetes) => void = () => undefined,
  args: readonly string[] = [],
) {
  const fake = await FakeKubernetes.start();
  prepare(fake);
  const mounted = await mountCertificate();
  const ca = await mounted.issue();
  const authority = createCertificateAuthority('api servers');
  const clients = await mountFile('ca.crt', authority.cert);
  const api = ['--kubernetes-api', 'true', '--kubeconfig', await fake.kubeconfig()];
  const verified = args.includes('unverified') ? [] : ['--client-ca-file', clients];
  const running = runInjector([
    ...mounted.settings,
    ...api,
    ...verified,
    ...args.filter((arg) => arg !== 'unverified'),
  ]);
  const client = apiServer(await running.port(), ca, authority.issue('kube-apiserver'));
  return {
    fake,
    running,
    async review(request: Readonly<Record<string, unknown>> = {}) {
      const { text } = await client.call('/mutate', reviewOf(POD, { namespace: 'team', ...request }));
      return JSON.parse(text).response;
    },
    events: () => fake.requests.filter((line) => line === 'POST /api/v1/namespaces/team/events').length,
    async ready(): Promise<void> {
      await until(async () => (await running.probe('/readyz')).status === 200);
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

it('warns of a missing Secret, and makes one Event on the owner for all of a rollout', async () => {
  const { review, ready, fake, events } = await start(
    (server) => server.put(REPLICA_SETS, REPLICA_SET),
    ['--check-secrets', 'true'],
  );
  await ready();
  const [first] = await Promise.all(Array.from({ length: 10 }, () => review()));
  expect(first.warnings).toEqual(['the Secret shop-oauth does not exist in team: the pod will wait for it']);
  await fake.until(() => events() > 0);
  await review();
  expect(events()).toBe(1);
});

describe('a review that anybody may have written', () => {
  it.each([
    ['an owner that is not there', (): void => undefined],
    [
      'an owner of another uid',
      (fake: FakeKubernetes) =>
        fake.put(REPLICA_SETS, { ...REPLICA_SET, metadata: { name: 'shop-7', uid: 'another' } }),
    ],
    [
      'an owner whose pods do not ask for what the review says',
      (fake: FakeKubernetes) =>
        fake.put(REPLICA_SETS, { ...REPLICA_SET, spec: { template: { metadata: {}, spec: POD.spec } } }),
    ],
  ])('causes nothing by naming %s', async (_, prepare) => {
    const { review, ready, fake, events } = await start(prepare, ['--check-secrets', 'true', 'unverified']);
    await ready();
    expect(await review()).not.toHaveProperty('warnings');
    // Another owner, looked at afterwards, is told: the one before could have been.
    fake.put(REPLICA_SETS, { ...REPLICA_SET, metadata: { name: 'true-one', uid: 'u-2' } });
    const owner = { ...OWNER, name: 'true-one', uid: 'u-2' };
    await review({ object: { ...POD, metadata: { ...POD.metadata, ownerReferences: [owner] } } });
    await fake.until(() => events() > 0);
    expect(events()).toBe(1);
    expect(fake.requests.filter((line) => line.includes('/secrets/'))).toHaveLength(1);
  });

  it('is answered alike whether the Secret exists or not', async () => {
    const put = (fake: FakeKubernetes): void =>
      fake.put('/api/v1/namespaces/team/secrets', { metadata: { name: 'shop-oauth' } });
    const answers = await Promise.all(
      [put, () => undefined].map(async (prepare) => {
        const { review, ready } = await start(prepare, ['--check-secrets', 'true', 'unverified']);
        await ready();
        return await review();
      }),
    );
    expect(answers[0]).toEqual(answers[1]);
  });

  it('names an owner that leads out of its path: nothing is asked', async () => {
    const { review, ready, fake } = await start(undefined, ['--check-secrets', 'true', 'unverified']);
    await ready();
    const asked = fake.requests.length;
    for (const name of ['../../../../api/v1/namespaces/kube-system/secrets/x', '..', 'a?watch=true']) {
      const pod = { ...POD, metadata: { ...POD.metadata, ownerReferences: [{ ...OWNER, name }] } };
      await review({ object: pod });
    }
    await review({ namespace: '../../nodes' });
    expect(fake.requests.length).toBe(asked);
  });
});

describe('an API server that must show who it is', () => {
  async function called(
    identity: { cert?: string; key?: string },
    args: readonly string[],
    authority: string,
  ) {
    const mounted = await mountCertificate();
    const ca = await mounted.issue();
    const clients = ['--client-ca-file', await mountFile('ca.crt', authority)];
    const running = runInjector([...mounted.settings, ...clients, ...args]);
    const client = apiServer(await running.port(), ca, identity);
    return { running, answer: client.call('/mutate', reviewOf(POD)) };
  }
  const authority = createCertificateAuthority('api servers');

  it('is answered with a certificate of the CA', async () => {
    const { answer } = await called(authority.issue('kube-apiserver'), [], authority.cert);
    await expect(answer).resolves.toMatchObject({ status: 200 });
  });

  it('is answered when one of its names may call', async () => {
    const names = ['--client-names', 'kube-apiserver, other'];
    const { answer } = await called(authority.issue('kube-apiserver'), names, authority.cert);
    await expect(answer).resolves.toMatchObject({ status: 200 });
  });

  it.each([
    ['without a certificate', {}, [], 'handshake'],
    ['with one of another CA', createCertificateAuthority('others').issue('kube-apiserver'), [], 'handshake'],
    ['with another name', authority.issue('some-pod'), ['--client-names', 'kube-apiserver'], 'client_name'],
  ])('is not answered %s', async (_, identity, args, reason) => {
    const { answer, running } = await called(identity, args, authority.cert);
    await expect(answer).rejects.toThrow();
    expect((await running.probe('/metrics')).text).toContain(
      `token_sidecar_injector_connections_dropped_total{reason="${reason}"} 1`,
    );
  });

  it('is known by a new CA from the moment its file changes, and a broken file changes nothing', async () => {
    const mounted = await mountCertificate();
    const ca = await mounted.issue();
    const file = await mountFile('ca.crt', createCertificateAuthority('old').cert);
    const running = runInjector([...mounted.settings, '--client-ca-file', file]);
    const port = await running.port();
    await writeFile(file, authority.cert);
    await running.logged('client CA loaded');
    await writeFile(file, 'no certificate');
    await running.logged('client CA not reloaded, the last good one stays');
    const client = apiServer(port, ca, authority.issue('kube-apiserver'));
    expect(await client.call('/mutate', reviewOf(POD))).toMatchObject({ status: 200 });
  });
});

it('makes no Event and looks at no owner where Events are off', async () => {
  const { review, ready, fake } = await start(
    (server) => server.put(REPLICA_SETS, REPLICA_SET),
    ['--check-secrets', 'true', '--events', 'false'],
  );
  await ready();
  expect((await review()).warnings).toHaveLength(1);
  expect(fake.requests.filter((line) => /replicasets|events/.test(line))).toEqual([]);
});

it('asks for the Secret’s metadata and never for its values', async () => {
  const { review, ready, fake } = await start(
    (server) => server.put('/api/v1/namespaces/team/secrets', { metadata: { name: 'shop-oauth' } }),
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
