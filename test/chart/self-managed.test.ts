/** The injector, told by the chart, against an API server that holds what the chart makes. */

import { expect, test } from 'vitest';
import { FakeKubernetes } from '../integration/injector/fake-kubernetes.ts';
import { runInjector } from '../integration/injector/running-injector.ts';
import { type Manifest, manifests, NAMESPACE, only } from './manifests.ts';

const COLLECTIONS = {
  Secret: `/api/v1/namespaces/${NAMESPACE}/secrets`,
  Lease: `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`,
  MutatingWebhookConfiguration: '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
};

interface Permission {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** A request, `METHOD /path?query`, in the terms of RBAC. */
function attempt(line: string) {
  const [method = '', target = ''] = line.split(' ');
  const { pathname, searchParams } = new URL(target, 'http://server');
  const [, group = '', resource = '', name] =
    /^\/(?:api|apis\/([^/]+))\/v1\/(?:namespaces\/[^/]+\/)?([^/]+)(?:\/([^/]+))?$/.exec(pathname) ?? [];
  const reading = searchParams.get('watch') === 'true' ? 'watch' : name === undefined ? 'list' : 'get';
  const verbs: Readonly<Record<string, string>> = {
    GET: reading,
    PUT: 'update',
    PATCH: 'patch',
    POST: 'create',
  };
  const selected = searchParams.get('fieldSelector')?.replace('metadata.name=', '');
  return { group, resource, name: name ?? selected ?? '', verb: verbs[method] ?? method };
}

function isAllowed(line: string, rules: readonly Permission[]): boolean {
  const { group, resource, name, verb } = attempt(line);
  return rules.some(
    ({ apiGroups, resources, resourceNames, verbs }) =>
      apiGroups.includes(group) &&
      resources.includes(resource) &&
      verbs.includes(verb) &&
      (resourceNames === undefined || resourceNames.includes(name)),
  );
}

/** The settings of a container as flags, but for those that the test has to choose. */
function flagsOf(container: Manifest): string[] {
  return container.env.flatMap(({ name, value }: Manifest) => {
    const flag = name.replace('TOKEN_SIDECAR_', '').toLowerCase().replaceAll('_', '-');
    return ['listen', 'admin-listen', 'log-level'].includes(flag) ? [] : [`--${flag}`, value];
  });
}

test('it fills the empty Secret, makes the Lease that goes with it, is trusted by the webhook, and needs no more than its permissions', async () => {
  const all = await manifests({
    ci: 'self-managed-values.yaml',
    set: ['injector.startupCheck.enabled=false'],
  });
  const fake = await FakeKubernetes.start();
  const secret = only(all, 'Secret');
  secret.metadata.uid = 'uid-of-the-secret';
  const configuration = only(all, 'MutatingWebhookConfiguration');
  fake.put(COLLECTIONS.Secret, secret);
  fake.put(COLLECTIONS.MutatingWebhookConfiguration, configuration);
  const stored = (kind: keyof typeof COLLECTIONS): Manifest => {
    const { metadata } = kind === 'MutatingWebhookConfiguration' ? configuration : secret;
    return fake.get(`${COLLECTIONS[kind]}/${metadata.name}`);
  };

  const [container] = only(all, 'Deployment').spec.template.spec.containers;
  const kubeconfig = await fake.kubeconfig(NAMESPACE);
  const injector = runInjector([...flagsOf(container), '--kubeconfig', kubeconfig]);
  await injector.logged('certificate loaded');
  await fake.until(
    () => stored('MutatingWebhookConfiguration').webhooks[0].clientConfig.caBundle !== undefined,
  );

  const { data } = stored('Secret');
  expect(stored('MutatingWebhookConfiguration').webhooks[0].clientConfig.caBundle).toBe(data['ca.crt']);
  expect(stored('Lease').spec.holderIdentity).not.toBe('');
  expect(stored('Lease').metadata.ownerReferences).toEqual([
    { apiVersion: 'v1', kind: 'Secret', name: secret.metadata.name, uid: 'uid-of-the-secret' },
  ]);
  injector.stop();
  expect(await injector.status).toBe(0);
  const rules = [...only(all, 'ClusterRole').rules, ...only(all, 'Role').rules];
  // Every service account may read the version.
  const asked = fake.requests.filter((line) => line !== 'GET /version');
  expect(asked.length).toBeGreaterThan(5);
  expect(asked.filter((line) => !isAllowed(line, rules))).toEqual([]);
});
