/** The Job that waits, after an installation, until API servers get answers from the webhook. */

import { expect, test } from 'vitest';
import { INJECTOR_SETTINGS } from '../../src/commands/injector-settings.ts';
import { readSettings } from '../../src/config/settings.ts';
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
    given: { namespace: { text: 'token-sidecar' }, 'wait-timeout': { text: '60s' } },
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

test('it runs after what it needs, once installed, and is removed when it has succeeded', async () => {
  const all = await manifests();
  const weightOf = (kind: string): number => {
    const { annotations } = named(all, kind).metadata;
    expect(annotations['helm.sh/hook']).toBe('post-install,test');
    expect(annotations['helm.sh/hook-delete-policy']).toBe('before-hook-creation,hook-succeeded');
    return Number(annotations['helm.sh/hook-weight']);
  };

  for (const kind of ['ServiceAccount', 'Role', 'RoleBinding']) {
    expect(weightOf(kind)).toBeLessThan(weightOf('Job'));
  }
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

test.each(['injector.startupCheck.enabled=false', 'injector.enabled=false'])(
  '%s leaves it out',
  async (value) => {
    const all = await manifests({ set: [value] });

    expect(all.map(({ metadata }) => metadata.name)).not.toContain(NAME);
    expect(JSON.stringify(all)).not.toContain('check.token-sidecar.dev');
  },
);
