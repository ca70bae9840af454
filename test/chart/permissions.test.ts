/** What the injector may do: no more than docs/reference/injector.md says. */

import { describe, expect, test } from 'vitest';
import { type Manifest, manifests, only, template } from './manifests.ts';

/** Events, and the owners that they are made on: a review alone proves nothing. */
const EVENTS = [
  { apiGroups: [''], resources: ['events'], verbs: ['create'] },
  { apiGroups: [''], resources: ['replicationcontrollers'], verbs: ['get'] },
  { apiGroups: ['apps'], resources: ['replicasets', 'statefulsets', 'daemonsets'], verbs: ['get'] },
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['get'] },
];

/** It goes by an account of its own. */
const NO_CHECK = 'injector.startupCheck.enabled=false';
const BY_HELM = ['injector.certificates.source=helm', NO_CHECK];

test('without Events it may do nothing at all', async () => {
  const all = await manifests({ set: [...BY_HELM, 'injector.kubernetesApi.events=false'] });

  expect(only(all, 'ClusterRole').rules).toEqual([]);
  expect(only(all, 'MutatingWebhookConfiguration').webhooks[0].sideEffects).toBe('None');
});

test('with a certificate made by others it may make Events on owners that it has read, and nothing else', async () => {
  const all = await manifests({ set: BY_HELM });

  expect(only(all, 'ClusterRole').rules).toEqual(EVENTS);
  expect(all.map(({ kind }) => kind)).not.toContain('Role');
});

test('it may read Secrets only when it is to look for them', async () => {
  const all = await manifests({ set: [...BY_HELM, 'injector.kubernetesApi.checkSecrets=true'] });

  expect(only(all, 'ClusterRole').rules).toEqual([
    ...EVENTS,
    { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
  ]);
});

test('to manage its certificate it may touch one webhook, one Secret that is there, and one Lease that it makes', async () => {
  const all = await manifests({ ci: 'self-managed-values.yaml', set: [NO_CHECK] });
  const nameOf = (kind: string): string => only(all, kind).metadata.name;

  expect(only(all, 'ClusterRole').rules).toEqual([
    ...EVENTS,
    {
      apiGroups: ['admissionregistration.k8s.io'],
      resources: ['mutatingwebhookconfigurations'],
      resourceNames: [nameOf('MutatingWebhookConfiguration')],
      verbs: ['get', 'list', 'watch', 'patch'],
    },
  ]);
  expect(only(all, 'Role').rules).toEqual([
    {
      apiGroups: [''],
      resources: ['secrets'],
      resourceNames: [nameOf('Secret')],
      verbs: ['get', 'list', 'watch', 'update'],
    },
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: [nameOf('Secret')],
      verbs: ['get', 'update'],
    },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
  ]);
  // Argo CD leaves Leases out of what it applies.
  expect(all.map(({ kind }) => kind)).not.toContain('Lease');
  expect(only(all, 'RoleBinding').subjects[0].name).toBe(nameOf('ServiceAccount'));
});

test('a certificate that it manages is its own: the chart renders none, and tells it all the names', async () => {
  const all = await manifests({ ci: 'self-managed-values.yaml', set: [NO_CHECK] });
  const pod = only(all, 'Deployment').spec.template.spec;
  const env = Object.fromEntries(pod.containers[0].env.map(({ name, value }: Manifest) => [name, value]));

  expect(only(all, 'Secret')).not.toHaveProperty('data');
  expect(only(all, 'MutatingWebhookConfiguration').webhooks[0].clientConfig).not.toHaveProperty('caBundle');
  expect(pod.automountServiceAccountToken).toBe(true);
  expect(env).toMatchObject({
    TOKEN_SIDECAR_KUBERNETES_API: 'true',
    TOKEN_SIDECAR_CERTIFICATE_SECRET: only(all, 'Secret').metadata.name,
    TOKEN_SIDECAR_CERTIFICATE_LIFETIME: '30d',
    TOKEN_SIDECAR_SERVICE_NAME: only(all, 'Service').metadata.name,
    TOKEN_SIDECAR_WEBHOOK_CONFIGURATION: only(all, 'MutatingWebhookConfiguration').metadata.name,
  });
  expect(env).not.toHaveProperty('TOKEN_SIDECAR_TLS_CERT_FILE');
});

const WATCHED = [
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['mutatingwebhookconfigurations'],
    resourceNames: ['token-sidecar-token-sidecar-injector'],
    verbs: ['get'],
  },
];

test('where nothing refuses pods without the sidecar it may look for them, and one Lease says which replica does', async () => {
  const all = await manifests({ set: [...BY_HELM, 'injector.webhook.enforce=false'] });

  expect(only(all, 'ClusterRole').rules).toEqual([...EVENTS, ...WATCHED]);
  expect(only(all, 'Role').rules).toEqual([
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: [only(all, 'Lease').metadata.name],
      verbs: ['get', 'update'],
    },
    // Where Argo CD leaves the chart's Lease out.
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
  ]);
});

test('it may evict pods only where it is to heal them', async () => {
  const all = await manifests({ set: [...BY_HELM, 'injector.kubernetesApi.healing=evict'] });

  expect(only(all, 'ClusterRole').rules).toEqual([
    ...EVENTS,
    ...WATCHED,
    { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
  ]);
  expect(only(all, 'Role').rules).toContainEqual({
    apiGroups: [''],
    resources: ['configmaps'],
    verbs: ['create'],
  });
  const { webhooks } = only(all, 'MutatingWebhookConfiguration');
  expect(JSON.stringify(webhooks)).toContain('"path":"/check"');
});

test('healing reads owners without Events too', async () => {
  const set = [...BY_HELM, 'injector.kubernetesApi.healing=evict', 'injector.kubernetesApi.events=false'];

  expect(only(await manifests({ set }), 'ClusterRole').rules).toEqual([
    ...EVENTS.slice(1),
    ...WATCHED,
    { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
  ]);
});

test('it may follow profiles and say what it finds on their status only where pods may name them', async () => {
  const set = ['injector.profiles.enabled=true', 'injector.profiles.aggregateRoles=false'];
  const all = await manifests({ set: [...BY_HELM, ...set] });
  const apiGroups = ['token-sidecar.dev'];

  expect(only(all, 'ClusterRole').rules).toEqual([
    ...EVENTS,
    { apiGroups, resources: ['tokenprofiles', 'clustertokenprofiles'], verbs: ['list', 'watch'] },
    {
      apiGroups,
      resources: ['tokenprofiles/status', 'clustertokenprofiles/status'],
      verbs: ['patch'],
    },
    { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
    { apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'watch'] },
  ]);
  expect(only(all, 'Lease').metadata.name).toBe('token-sidecar-injector-profiles');
  expect(only(all, 'Role').rules).toEqual([
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: ['token-sidecar-injector-profiles'],
      verbs: ['get', 'update'],
    },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
  ]);
});

describe('the people of a namespace', () => {
  const ROLES = ['admin', 'edit', 'view'];
  const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection'];
  const READ = ['get', 'list', 'watch'];
  const LABEL = 'rbac.authorization.k8s.io/aggregate-to-';

  /** The rules that a role of Kubernetes gets from the chart, as the API server collects them. */
  async function addedTo(role: string, ...set: string[]): Promise<Manifest[]> {
    const all = await manifests({ set: [...BY_HELM, ...set] });
    return all
      .filter(({ kind, metadata }) => kind === 'ClusterRole' && metadata.labels[`${LABEL}${role}`] === 'true')
      .flatMap(({ rules }) => rules);
  }

  test.each(['crds.enabled=true', 'injector.profiles.enabled=true'])(
    'write or read TokenProfiles by their roles, never their status nor those of the cluster: %s',
    async (set) => {
      const profiles = { apiGroups: ['token-sidecar.dev'], resources: ['tokenprofiles'] };
      const may = (verbs: string[]) => ({ ...profiles, verbs });
      expect(await addedTo('admin', set)).toEqual([may(WRITE), may(READ)]);
      expect(await addedTo('edit', set)).toEqual([may(WRITE), may(READ)]);
      expect(await addedTo('view', set)).toEqual([may(READ)]);
    },
  );

  test.each([
    ['there are no profiles', []],
    [
      'the operator wants none',
      ['crds.enabled=true', 'injector.profiles.enabled=true', 'injector.profiles.aggregateRoles=false'],
    ],
  ])('get nothing where %s', async (_, set) => {
    for (const role of ROLES) expect(await addedTo(role, ...set)).toEqual([]);
  });
});

test('profiles without the API are refused', async () => {
  const set = ['injector.profiles.enabled=true', 'injector.kubernetesApi.enabled=false'];
  const { ok, stderr } = await template({ set: [...BY_HELM, ...set] });

  expect(ok).toBe(false);
  expect(stderr).toContain(
    'injector.kubernetesApi.enabled: the injector needs the API when injector.profiles',
  );
});

test('healing without looking is refused', async () => {
  const { ok, stderr } = await template({
    set: ['injector.kubernetesApi.healing=evict', 'injector.kubernetesApi.watchPods=false'],
  });

  expect(ok).toBe(false);
  expect(stderr).toContain('injector.kubernetesApi.healing: evicting needs');
});
