/** Profiles of a cluster: the injector follows them, injects by them and reports on them. */

import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { judge } from '../../../src/injector/profile-rules.ts';
import { startProfileReports } from '../../../src/injector/profiles/profile-reports.ts';
import { watchProfiles } from '../../../src/injector/profiles/profile-store.ts';
import { connectKubernetes } from '../../../src/platform/kubernetes/client.ts';
import { reviewOf } from '../../injector/review.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { FakeKubernetes, type StoredObject } from './fake-kubernetes.ts';
import { passUntil } from './passing-time.ts';
import { apiServer, mountCertificate, runInjector } from './running-injector.ts';

const TOKEN_PROFILES = '/apis/token-sidecar.dev/v1alpha1/tokenprofiles';
const CLUSTER_PROFILES = '/apis/token-sidecar.dev/v1alpha1/clustertokenprofiles';
const NAMESPACES = '/api/v1/namespaces';
const PODS = '/api/v1/pods';

const SPEC = {
  credentials: [{ issuerUrl: 'https://login.example.com', secret: { name: 'oauth' } }],
  routes: [{ upstream: 'https://api.example.com' }],
};
const to = (upstream: string) => ({ ...SPEC, routes: [{ upstream }] });

function profile(name: string, spec: object = SPEC, generation = 1): StoredObject {
  return { metadata: { name, namespace: 'team', uid: `uid-${name}`, generation }, spec };
}

async function cluster(): Promise<FakeKubernetes> {
  const fake = await FakeKubernetes.start();
  for (const collection of [TOKEN_PROFILES, CLUSTER_PROFILES, NAMESPACES]) fake.collections.add(collection);
  return fake;
}

describe('the webhook', () => {
  async function start(fake: FakeKubernetes, ...args: readonly string[]) {
    const mounted = await mountCertificate();
    const ca = await mounted.issue();
    const api = ['--kubernetes-api', 'true', '--kubeconfig', await fake.kubeconfig()];
    const running = runInjector([
      ...mounted.settings,
      ...api,
      ...['--events', 'false', '--default-native-sidecar', 'true', ...args],
    ]);
    const client = apiServer(await running.port(), ca);
    /** What becomes of a pod of the namespace `team`: the configuration of its sidecar, or why it is refused. */
    async function made(names: string): Promise<string> {
      const annotations = { 'token-sidecar.dev/inject': 'true', 'token-sidecar.dev/profile': names };
      const pod = {
        metadata: { generateName: 'shop-', annotations },
        spec: { containers: [{ name: 'app' }] },
      };
      const { text } = await client.call('/mutate', reviewOf(pod, { namespace: 'team' }));
      const { response } = JSON.parse(text);
      if (!response.allowed) return response.status.message;
      return Buffer.from(response.patch, 'base64').toString();
    }

    return {
      running,
      made,
      /** Resolves once the same is so: changes take the way through the API. */
      async becomes(names: string, expected: string): Promise<void> {
        await expect.poll(() => made(names), { interval: 20 }).toContain(expected);
      },
      async ready(): Promise<void> {
        await until(async () => (await running.probe('/readyz')).status === 200);
      },
    };
  }

  it('injects by a profile as it is at the moment, and refuses what is not there', async () => {
    const fake = await cluster();
    fake.put(TOKEN_PROFILES, profile('payments'));
    const { made, becomes, ready } = await start(fake, '--watch-profiles', 'true');
    await ready();
    expect(await made('payments')).toContain('https://api.example.com');
    expect(await made('payments, crm')).toContain(
      '"crm": expected the name of a TokenProfile in the namespace team',
    );

    fake.put(TOKEN_PROFILES, profile('payments', to('https://v2.example.com'), 2));
    fake.put(TOKEN_PROFILES, profile('crm', { credentials: [] }));
    await becomes('payments', 'https://v2.example.com');
    expect(await made('payments')).toContain('TokenProfile/payments@2');
    await becomes('crm', 'TokenProfile crm: spec.credentials: expected a list of 1 to 16');

    fake.delete(TOKEN_PROFILES, 'payments');
    await becomes('payments', '"payments": expected the name of a TokenProfile');
  });

  it('admits namespaces to profiles of the cluster by their labels, as they change', async () => {
    const fake = await cluster();
    const namespaces = { selector: { matchLabels: { tier: 'web' } } };
    const { metadata } = profile('crm');
    fake.put(CLUSTER_PROFILES, {
      metadata: { ...metadata, namespace: undefined },
      spec: { ...SPEC, namespaces },
    });
    fake.put(NAMESPACES, { metadata: { name: 'team', labels: { tier: 'data' } } });
    const { made, becomes, ready } = await start(fake, '--watch-profiles', 'true');
    await ready();
    expect(await made('crm')).toContain(
      '"crm": expected a ClusterTokenProfile that admits the namespace team',
    );
    fake.put(NAMESPACES, { metadata: { name: 'team', labels: { tier: 'web' } } });
    await becomes('crm', 'https://api.example.com');
  });

  it('sends pods to the broker that it is told of, by the CAs that its file has at the moment', async () => {
    const fake = await cluster();
    const viaBroker = SPEC.credentials.map((credential) => ({ ...credential, via: 'broker' }));
    const { metadata } = profile('crm');
    fake.put(CLUSTER_PROFILES, {
      metadata: { ...metadata, namespace: undefined },
      spec: { ...SPEC, credentials: viaBroker, namespaces: { names: ['team'] } },
    });
    const [first, next] = ['first', 'next'].map((name) => createCertificateAuthority(name).cert);
    const mounted = await mountSecret({ 'ca.crt': first as string });
    const told = ['--broker-url', 'https://broker.tokens.svc:15084', '--broker-ca-file'];
    const { made, becomes, ready } = await start(
      fake,
      ...['--watch-profiles', 'true', ...told, join(mounted.directory, 'ca.crt')],
    );
    await ready();
    const inPatch = (pem: string | undefined): string => JSON.stringify(pem).slice(1, -1);
    expect(await made('crm')).toContain('https://broker.tokens.svc:15084/token/crm/crm');
    expect(await made('crm')).toContain(inPatch(first));
    await mounted.update({ 'ca.crt': next as string });
    await becomes('crm', inPatch(next));
  });

  it('goes on with what it knows while the API server is away, and follows it when it is back', async () => {
    const fake = await cluster();
    fake.put(TOKEN_PROFILES, profile('payments'));
    const { made, becomes, ready, running } = await start(fake, '--watch-profiles', 'true');
    await ready();
    fake.failNext(/\/tokenprofiles/, { status: 503 });
    fake.expireWatches();
    fake.put(TOKEN_PROFILES, profile('payments', to('https://v2.example.com'), 2));
    await running.logged('watch broke off');
    expect(await made('payments')).toContain('https://api.example.com');
    await becomes('payments', 'https://v2.example.com');
  }, 30_000);

  it('serves other pods without the definitions, and says what is missing to those that name a profile', async () => {
    const fake = await FakeKubernetes.start();
    const { made, ready } = await start(fake, '--watch-profiles', 'true');
    await ready();
    expect(await made('payments')).toContain(
      'expected profiles that can be read: /apis/token-sidecar.dev/v1alpha1/tokenprofiles: their definition is not installed (crds.enabled of the chart)',
    );
  });

  it('is not ready before it knows the profiles', async () => {
    const fake = await cluster();
    const { promise, resolve } = Promise.withResolvers<void>();
    fake.failNext(/\/clustertokenprofiles/, { until: promise });
    const { made, ready, running } = await start(fake, '--watch-profiles', 'true');
    expect(await running.probe('/readyz')).toMatchObject({
      status: 503,
      text: expect.stringContaining('"part": "profiles"'),
    });
    expect(await made('payments')).toContain('they are being read; try again in a moment');
    resolve();
    await ready();
  });

  it('needs the API for them', async () => {
    const mounted = await mountCertificate();
    await mounted.issue();
    const { status } = runInjector([...mounted.settings, '--watch-profiles', 'true']);
    await expect(status).rejects.toThrow('--watch-profiles: "true": expected false without --kubernetes-api');
  });

  it('asks nothing of profiles where they are switched off', async () => {
    const fake = await cluster();
    fake.put(TOKEN_PROFILES, profile('payments'));
    const { made, ready } = await start(fake);
    await ready();
    expect(await made('payments')).toContain('expected nothing, as profiles are switched off here');
    expect(fake.requests.filter((request) => /profiles|namespaces/.test(request))).toEqual([]);
  });
});

describe('the status of a profile', () => {
  async function start(fake: FakeKubernetes) {
    const clock = new ManualClock();
    const api = connectKubernetes(await fake.kubeconfig(), clock);
    const { log, lines } = captureLog();
    const options = { clock, random: () => 0.5, log };
    const store = watchProfiles(api, { ...options, judge });
    const reports = startProfileReports(api, {
      ...options,
      store,
      namespace: 'system',
      leaseName: 'profiles',
      identity: 'one',
    });
    onTestFinished(async () => {
      store.close();
      await reports.close();
    });
    const statusOf = (name: string, collection = TOKEN_PROFILES) =>
      fake.get(`${collection}/${name}`)?.['status'] as Readonly<Record<string, unknown>> | undefined;
    return {
      clock,
      lines,
      statusOf,
      reported: (condition: () => boolean) => passUntil(clock, condition, 500),
    };
  }

  const pod = (name: string, inUse: string, more: object = {}): StoredObject => ({
    metadata: {
      name,
      namespace: 'team',
      uid: name,
      annotations: { 'token-sidecar.dev/profiles-in-use': inUse },
      ...more,
    },
  });

  it('says whether it is valid, and what is wrong', async () => {
    const fake = await cluster();
    fake.put(TOKEN_PROFILES, profile('payments', SPEC, 3));
    fake.put(TOKEN_PROFILES, profile('broken', { credentials: [{ secret: { name: 'a' } }], routes: [] }));
    const { statusOf, reported } = await start(fake);
    await reported(() => statusOf('payments') !== undefined && statusOf('broken') !== undefined);
    expect(statusOf('payments')).toEqual({
      observedGeneration: 3,
      pods: 0,
      outdatedPods: 0,
      conditions: [
        {
          type: 'Valid',
          status: 'True',
          reason: 'Valid',
          message: 'pods can use it',
          observedGeneration: 3,
          lastTransitionTime: expect.stringMatching(/^2030-01-01T00:0\d:\d\dZ$/),
        },
      ],
    });
    expect(statusOf('broken')).toMatchObject({
      conditions: [
        {
          status: 'False',
          reason: 'Invalid',
          message: expect.stringContaining('spec.routes: expected'),
        },
      ],
    });
  });

  it('counts the pods that use it, and those that were made before its last change', async () => {
    const fake = await cluster();
    fake.put(TOKEN_PROFILES, profile('payments', SPEC, 2));
    fake.put(CLUSTER_PROFILES, { metadata: { name: 'crm', uid: 'uid-crm', generation: 1 }, spec: SPEC });
    fake.put(PODS, pod('old', 'TokenProfile/payments@1, ClusterTokenProfile/crm@1'));
    fake.put(PODS, pod('new', 'TokenProfile/payments@2'));
    fake.put(PODS, pod('ending', 'TokenProfile/payments@2', { deletionTimestamp: '2030-01-01T00:00:00Z' }));
    fake.put(PODS, pod('elsewhere', 'TokenProfile/payments@2', { namespace: 'other' }));
    fake.put(PODS, pod('odd', 'TokenProfile/payments@@, x, '));
    const { statusOf, reported } = await start(fake);
    await reported(
      () => statusOf('payments')?.['pods'] === 2 && statusOf('crm', CLUSTER_PROFILES)?.['pods'] === 1,
    );
    expect(statusOf('payments')).toMatchObject({ pods: 2, outdatedPods: 1 });
    fake.delete(PODS, 'old');
    await reported(() => statusOf('payments')?.['outdatedPods'] === 0);
    expect(statusOf('payments')).toMatchObject({ pods: 1 });
    expect(fake.requests).toContainEqual(
      expect.stringMatching(/^GET \/api\/v1\/pods\?labelSelector=token-sidecar.dev%2Fhas-profile%3Dtrue&/),
    );
  });

  it('is written when something has changed, and not again', async () => {
    const fake = await cluster();
    fake.put(TOKEN_PROFILES, profile('payments'));
    const { clock, statusOf, reported } = await start(fake);
    await reported(() => statusOf('payments') !== undefined);
    const writes = () => fake.requests.filter((request) => request.startsWith('PATCH')).length;
    const before = writes();
    let until = 20;
    await passUntil(clock, () => until-- === 0);
    expect(writes()).toBe(before);
  });

  it('is tried again later where it cannot be written', async () => {
    const fake = await cluster();
    fake.put(TOKEN_PROFILES, profile('payments'));
    fake.failNext(/^PATCH/, { status: 403 });
    const { lines, statusOf, reported } = await start(fake);
    await reported(() => statusOf('payments') !== undefined);
    expect(lines.filter((line) => line.includes('status of a profile not written'))).toHaveLength(1);
  });
});
