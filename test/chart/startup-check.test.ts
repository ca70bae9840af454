/** The Job that waits, after an installation or an upgrade, until API servers get answers from the webhook. */

import { expect, test } from 'vitest';
import { readSettings } from '../../src/config/settings.ts';
import { INJECTOR_SETTINGS } from '../../src/injector/settings.ts';
import { type Manifest, manifests, only } from './manifests.ts';

const NAME = 'token-sidecar-startup-check';

function named(all: readonly Manifest[], kind: string): Manifest {
  return only(
    all.filter(({ metadata }) => metadata.name === NAME),
    kind,
  );
}

test('it runs a command of the image, as an account that may make ConfigMaps and nothing else', async () => {
  const all = await manifests();
  const { spec } = named(all, 'Job').spec.template;
  const [container] = spec.containers;

  expect(readSettings(INJECTOR_SETTINGS, container.args.slice(1), {})).toMatchObject({
    positionals: ['wait'],
    given: { namespace: { text: 'token-sidecar' }, 'wait-timeout': { text: '180s' } },
  });
  expect(container.args[0]).toBe('injector');
  expect(spec.serviceAccountName).toBe(named(all, 'ServiceAccount').metadata.name);
  expect(named(all, 'RoleBinding').subjects).toEqual([
    { kind: 'ServiceAccount', name: NAME, namespace: 'token-sidecar' },
  ]);
  expect(named(all, 'Role').rules).toEqual([
    { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
  ]);
});

test('it runs after what it needs, once installed or upgraded, and is removed when it has succeeded', async () => {
  const all = await manifests();
  const weightOf = (kind: string): number => {
    const { annotations } = named(all, kind).metadata;
    expect(annotations['helm.sh/hook']).toBe('post-install,post-upgrade,test');
    expect(annotations['helm.sh/hook-delete-policy']).toBe('before-hook-creation,hook-succeeded');
    return Number(annotations['helm.sh/hook-weight']);
  };

  for (const kind of ['ServiceAccount', 'Role', 'RoleBinding']) {
    expect(weightOf(kind)).toBeLessThan(weightOf('Job'));
  }
});

test('it ends before Helm gives up, and its pod stays so that the log can be read', async () => {
  const { spec } = named(await manifests(), 'Job');

  expect(spec).toMatchObject({ backoffLimit: 0, activeDeadlineSeconds: 240 });
  expect(spec.template.spec.restartPolicy).toBe('Never');
});

test.each([
  ['45s', 0, 105],
  ['2m', 1, 300],
])('attempts of %s and %i more have %i seconds', async (timeout, further, seconds) => {
  const set = [`injector.startupCheck.timeout=${timeout}`, `injector.startupCheck.backoffLimit=${further}`];

  expect(named(await manifests({ set }), 'Job').spec.activeDeadlineSeconds).toBe(seconds);
});

test('in closed networks it reaches the API server and DNS, as the injector does, and nothing reaches it', async () => {
  const peer = 'networkPolicy.apiServerTo[0].ipBlock.cidr=10.0.0.1/32';
  const all = await manifests({ set: ['networkPolicy.enabled=true', peer] });
  const policies = all.filter(({ kind }) => kind === 'NetworkPolicy');
  const own = policies.find(({ metadata }) => metadata.name === NAME);
  const injector = policies.find(({ metadata }) => metadata.name === 'token-sidecar-injector');
  const job = named(all, 'Job');

  expect(job.spec.template.metadata.labels).toMatchObject(own.spec.podSelector.matchLabels);
  expect(own.spec).toMatchObject({ policyTypes: ['Ingress', 'Egress'], ingress: [] });
  expect(own.spec.egress).toEqual(injector.spec.egress);
  expect(own.spec.egress).toEqual([
    {
      ports: [443, 6443].map((port) => ({ port, protocol: 'TCP' })),
      to: [{ ipBlock: { cidr: '10.0.0.1/32' } }],
    },
    { ports: [53, 5353].flatMap((port) => ['UDP', 'TCP'].map((protocol) => ({ port, protocol }))) },
  ]);
  const weightOf = ({ metadata }: Manifest) => Number(metadata.annotations['helm.sh/hook-weight']);
  expect(weightOf(own)).toBeLessThan(weightOf(job));
});

test('what it tries reaches the injector, and nothing else does that way', async () => {
  const [inject, check] = only(await manifests(), 'MutatingWebhookConfiguration').webhooks;

  expect(check.clientConfig).toEqual({
    ...inject.clientConfig,
    service: { ...inject.clientConfig.service, path: '/check' },
  });
  expect(check).toMatchObject({
    failurePolicy: 'Fail',
    sideEffects: 'None',
    rules: [{ operations: ['CREATE'], resources: ['configmaps'] }],
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'token-sidecar' } },
    objectSelector: { matchLabels: { 'token-sidecar.dev/check': 'true' } },
  });
});

test('it runs where the injector may, but not in the network of the host', async () => {
  const set = ['injector.hostNetwork=true', 'injector.nodeSelector.pool=system'];
  const { spec } = named(await manifests({ set }), 'Job').spec.template;

  expect(spec.nodeSelector).toEqual({ pool: 'system' });
  expect(spec).not.toHaveProperty('hostNetwork');
});

test.each([
  'injector.startupCheck.enabled=false',
  'injector.enabled=false',
  'injector.kubernetesApi.enabled=false,injector.certificates.source=helm',
])('%s leaves it out', async (value) => {
  const all = await manifests({ set: [value] });

  expect(all.map(({ metadata }) => metadata.name)).not.toContain(NAME);
  expect(JSON.stringify(all)).not.toContain('check.token-sidecar.dev');
});
