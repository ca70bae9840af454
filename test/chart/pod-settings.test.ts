import { describe, expect, test } from 'vitest';
import { type Manifest, manifests, only, template } from './manifests.ts';

const CI = 'pod-settings-values.yaml';

function deployment(all: readonly Manifest[], component: string): Manifest {
  return all.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === `token-sidecar-${component}`,
  );
}

async function podOf(component: string, ...set: string[]): Promise<Manifest> {
  return deployment(await manifests({ set }), component).spec.template.spec;
}

async function injectorEnvironment(...set: string[]): Promise<Record<string, string>> {
  const [{ env }] = (await podOf('injector', ...set)).containers;
  return Object.fromEntries(env.map(({ name, value }: Manifest) => [name, value]));
}

const ISSUER = ['issuer.enabled=true', 'issuer.clients.secrets={shop}'];

const BROKER = ['broker.enabled=true', 'broker.secrets={a}', 'injector.profiles.enabled=true'];

const GATEWAY = [
  'gateway.enabled=true',
  'gateway.callers[0].name=web',
  'gateway.callers[0].match.serviceAccount=shop/web',
  'gateway.callers[0].allowedRoutes={all}',
  'gateway.credentials[0].name=default',
  'gateway.credentials[0].authUrl=https://sso.example.com',
  'gateway.credentials[0].secret.name=shop-oauth',
  'gateway.routes[0].name=all',
  'gateway.routes[0].upstream=https://api.example.com',
  'gateway.certificates.existing.secretName=gateway-tls',
];
const ON: Readonly<Record<string, readonly string[]>> = {
  injector: [],
  issuer: ISSUER,
  broker: BROKER,
  gateway: GATEWAY,
};

describe.each(Object.entries(ON))('the %s', (component, on) => {
  test('takes the settings that all share, unless it has its own', async () => {
    const shared = [
      'global.priorityClassName=shared',
      'global.nodeSelector.pool=shared',
      'global.tolerations[0].operator=Exists',
      'global.logLevel=debug',
    ];
    const own = ['priorityClassName=own', 'nodeSelector.disk=own', 'logLevel=error'];

    expect(await podOf(component, ...on, ...shared)).toMatchObject({
      priorityClassName: 'shared',
      nodeSelector: { pool: 'shared' },
      tolerations: [{ operator: 'Exists' }],
      containers: [{ env: expect.arrayContaining([{ name: 'TOKEN_SIDECAR_LOG_LEVEL', value: 'debug' }]) }],
    });
    const pod = await podOf(component, ...on, ...shared, ...own.map((value) => `${component}.${value}`));
    expect(pod).toMatchObject({
      priorityClassName: 'own',
      containers: [{ env: expect.arrayContaining([{ name: 'TOKEN_SIDECAR_LOG_LEVEL', value: 'error' }]) }],
    });
    expect(pod.nodeSelector).toEqual({ disk: 'own' });
  });

  test.each([
    ['global.logLevel=2', 'another chart counts levels'],
    ['global.logLevel=verbose', 'another chart names them otherwise'],
    ['global.logLevel=null', 'it is taken away'],
    ['global.compatibility=null', 'nothing is said of platforms'],
    ['global.compatibility.openshift=null', 'nothing is said of OpenShift'],
  ])('runs with %s: %s', async (value) => {
    const pod = await podOf(component, ...on, value);

    expect(pod.containers[0].env).toContainEqual({ name: 'TOKEN_SIDECAR_LOG_LEVEL', value: 'info' });
    expect(pod.securityContext.runAsUser).toBe(65532);
  });

  test('has no service links, and no users of its own unless asked', async () => {
    const pod = await podOf(component, ...on);

    expect(pod.enableServiceLinks).toBe(false);
    expect(pod).not.toHaveProperty('hostUsers');
    expect((await podOf(component, ...on, `${component}.hostUsers=false`)).hostUsers).toBe(false);
    expect((await podOf(component, ...on, `${component}.hostUsers=true`)).hostUsers).toBe(true);
  });

  test('leaves users and groups to OpenShift, where that is found or asked for', async () => {
    const adapt = 'global.compatibility.openshift.adaptSecurityContext';
    const args = ['--api-versions', 'security.openshift.io/v1'];
    const found = deployment(await manifests({ set: on, args }), component).spec.template.spec;
    for (const pod of [found, await podOf(component, ...on, `${adapt}=force`)]) {
      expect(pod.securityContext).toEqual({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
    }
    const disabled = deployment(await manifests({ set: [...on, `${adapt}=disabled`], args }), component);
    expect(disabled.spec.template.spec.securityContext.runAsUser).toBe(65532);
    expect((await podOf(component, ...on)).securityContext.fsGroup).toBe(65532);
  });

  test('replaces a replica only once another is there, unless both want the same ports of a node', async () => {
    const strategyOf = async (...set: string[]) =>
      deployment(await manifests({ set: [...on, ...set] }), component).spec.strategy;

    expect((await strategyOf()).rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
    expect(await strategyOf(`${component}.strategy.type=Recreate`)).toEqual({ type: 'Recreate' });
  });
});

test('in the host network one replica goes before another comes', async () => {
  const { spec } = deployment(await manifests({ set: ['injector.hostNetwork=true'] }), 'injector');

  expect(spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 1, maxSurge: 0 });
});

test('images come from the registry that all charts share', async () => {
  const registry = 'global.imageRegistry=registry.example.com:5000/mirror/';
  const imageOf = async (...set: string[]) => (await podOf('injector', registry, ...set)).containers[0].image;

  expect(await imageOf()).toBe('registry.example.com:5000/mirror/token-sidecar/token-sidecar:0.1.0');
  expect(await imageOf('image.repository=localhost/tokens')).toBe(
    'registry.example.com:5000/mirror/tokens:0.1.0',
  );
  expect(await imageOf('image.repository=team/tokens', 'image.tag=v7')).toBe(
    'registry.example.com:5000/mirror/team/tokens:v7',
  );
  expect((await injectorEnvironment(registry))['TOKEN_SIDECAR_DEFAULT_IMAGE']).toBe(await imageOf());
});

test('pull Secrets go to the own pods once each, and to injected pods', async () => {
  const all = await manifests({ ci: CI });

  expect(deployment(all, 'injector').spec.template.spec.imagePullSecrets).toEqual([
    { name: 'mirror' },
    { name: 'by-name' },
    { name: 'registry' },
  ]);
  const variable = 'TOKEN_SIDECAR_DEFAULT_IMAGE_PULL_SECRETS';
  const shared = 'global.imagePullSecrets[0].name=mirror';
  expect((await injectorEnvironment(shared))[variable]).toBe('mirror');
  expect((await injectorEnvironment(shared, 'sidecar.imagePullSecrets[0].name=own'))[variable]).toBe('own');
  expect(await injectorEnvironment('imagePullSecrets[0].name=registry')).not.toHaveProperty(variable);
});

test('injected pods get no user where OpenShift assigns it', async () => {
  const variable = 'TOKEN_SIDECAR_DEFAULT_RUN_AS_USER';
  const force = 'global.compatibility.openshift.adaptSecurityContext=force';

  expect((await injectorEnvironment(force))[variable]).toBe('none');
  expect(await injectorEnvironment()).not.toHaveProperty(variable);
});

test('another namespace than that of the release is the one of every object and every name in them', async () => {
  const all = await manifests({ ci: CI, args: ['--namespace', 'installed-into'] });

  // The command that a refusal names is Helm's, which finds the release where it was installed.
  const objects = JSON.stringify(all).replaceAll('helm test token-sidecar --namespace installed-into', '');
  expect(objects).not.toContain('installed-into');
  const namespaces = new Set(all.map(({ metadata }) => metadata.namespace).filter(Boolean));
  expect([...namespaces].sort()).toEqual(['monitoring', 'tokens']);
  const [webhook] = only(all, 'MutatingWebhookConfiguration').webhooks;
  expect(webhook.clientConfig.service.namespace).toBe('tokens');
});

test('labels may be said twice, the nearer one holds', async () => {
  const { metadata, spec } = deployment(
    await manifests({ set: ['commonLabels.team=platform', 'injector.podLabels.team=tokens'] }),
    'injector',
  );

  expect(metadata.labels.team).toBe('platform');
  expect(spec.template.metadata.labels.team).toBe('tokens');
});

test('a spread counts the replicas of one rollout alone, unless it says itself what it counts', async () => {
  const spread = 'injector.topologySpreadConstraints';
  const zone = ['maxSkew=1', 'topologyKey=zone', 'whenUnsatisfiable=ScheduleAnyway'];
  const second = [...zone, 'labelSelector.matchLabels.app=mine'].map((value) => `${spread}[1].${value}`);
  const third = [...zone, 'matchLabelKeys[0]=team'].map((value) => `${spread}[2].${value}`);
  const first = zone.map((value) => `${spread}[0].${value}`);
  const { topologySpreadConstraints } = await podOf('injector', ...first, ...second, ...third);

  expect(topologySpreadConstraints.map(({ matchLabelKeys }: Manifest) => matchLabelKeys)).toEqual([
    ['pod-template-hash'],
    undefined,
    ['team'],
  ]);
});

test.each([
  [
    'a pod in the host network with users of its own',
    ['injector.hostNetwork=true', 'injector.hostUsers=false'],
    /injector\.hostUsers/,
  ],
  [
    'a budget of nothing',
    ['injector.podDisruptionBudget.maxUnavailable='],
    /set maxUnavailable or minAvailable/,
  ],
])('%s is refused', async (_, set, message) => {
  const { ok, stderr } = await template({ set });

  expect(ok).toBe(false);
  expect(stderr).toMatch(message);
});
