import { afterAll, expect, it } from 'vitest';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { permissionsOf } from '../support/permissions.ts';
import { installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { hasPolicies, inCluster, useShop } from '../support/scenario.ts';

const SHOP = 'permissions';
const ACCOUNT = `${NAMESPACE}:${RELEASE}-injector`;
const USER = `system:serviceaccount:${ACCOUNT}`;
const WEBHOOKS = `${NAMESPACE}-${RELEASE}-injector`;
const CERTIFICATE = `${RELEASE}-injector-self-managed`;
const MORE = 'permissions-test';

/** Of the tables in docs/reference/injector.md: what the release asks for by default. */
const EVERYWHERE = [
  'create events',
  'get apps/daemonsets',
  'get apps/replicasets',
  'get apps/statefulsets',
  'get batch/jobs',
  'get replicationcontrollers',
  ...['get', 'list', 'patch', 'watch'].map(
    (verb) => `${verb} admissionregistration.k8s.io/mutatingwebhookconfigurations ${WEBHOOKS}`,
  ),
];
const IN_ITS_NAMESPACE = [
  'create coordination.k8s.io/leases',
  ...['get', 'update'].map((verb) => `${verb} coordination.k8s.io/leases ${CERTIFICATE}`),
  ...['get', 'list', 'update', 'watch'].map((verb) => `${verb} secrets ${CERTIFICATE}`),
];

/** What it gets besides, where everything is switched on that needs more. */
const WITH_EVERYTHING = {
  'injector.webhook.enforce': false,
  'injector.kubernetesApi.healing': 'evict',
  'injector.kubernetesApi.checkSecrets': true,
  'crds.enabled': true,
  'injector.profiles.enabled': true,
};
const MORE_EVERYWHERE = [
  'create pods/eviction',
  ...['get', 'list', 'watch'].map((verb) => `${verb} namespaces`),
  'get secrets',
  ...['list', 'watch'].map((verb) => `${verb} pods`),
  ...['tokenprofiles', 'clustertokenprofiles'].flatMap((profiles) => [
    `list token-sidecar.dev/${profiles}`,
    `watch token-sidecar.dev/${profiles}`,
    `patch token-sidecar.dev/${profiles}/status`,
  ]),
];
const MORE_IN_ITS_NAMESPACE = [
  'create configmaps',
  ...['get', 'update'].map((verb) => `${verb} coordination.k8s.io/leases ${RELEASE}-injector`),
  ...['get', 'update'].map((verb) => `${verb} coordination.k8s.io/leases ${RELEASE}-injector-profiles`),
];

const sorted = (...permissions: readonly string[]): readonly string[] => [...permissions].sort();

inCluster("the injector's service account", () => {
  useShop(SHOP);
  afterAll(async () => {
    await kubectl(
      'delete',
      'clusterrole,clusterrolebinding,mutatingwebhookconfiguration',
      MORE,
      '--ignore-not-found',
    );
    await installChart();
  });

  const asInjector = (...args: readonly string[]): Promise<string> => kubectl('--as', USER, ...args);
  const patchWebhook = (name: string, operation: object): Promise<string> =>
    asInjector(
      ...(['patch', 'mutatingwebhookconfiguration', name, '--type=json', '--dry-run=server'] as const),
      ...['-p', JSON.stringify([operation])],
    );

  it('may do what the documentation says, and nothing else', async () => {
    // Where nothing refuses pods without their sidecar, it would look for them.
    await installChart(hasPolicies ? {} : { 'injector.kubernetesApi.watchPods': false });
    expect(await permissionsOf(ACCOUNT, SHOP)).toEqual(sorted(...EVERYWHERE));
    expect(await permissionsOf(ACCOUNT, NAMESPACE)).toEqual(sorted(...EVERYWHERE, ...IN_ITS_NAMESPACE));
    expect(await permissionsOf(`${NAMESPACE}:${RELEASE}-issuer`, NAMESPACE)).toEqual([]);
  });

  it('is refused Secrets, Leases and webhooks of others', async () => {
    for (const [args, what] of [
      [['get', 'secret', 'shop-oauth', '-n', SHOP], 'secrets "shop-oauth"'],
      [['get', 'secrets', '-n', NAMESPACE], 'secrets'],
      [['get', 'secret', 'issuer-clients', '-n', NAMESPACE], 'secrets "issuer-clients"'],
      [['create', 'secret', 'generic', 'another', '-n', NAMESPACE], 'secrets'],
      [['get', 'lease', CERTIFICATE, '-n', SHOP], 'leases'],
      [['get', 'pods', '-n', SHOP], 'pods'],
      [['get', 'mutatingwebhookconfigurations'], 'mutatingwebhookconfigurations'],
    ] as const) {
      await expect(asInjector(...args), args.join(' ')).rejects.toThrow(
        new RegExp(`${what}.* is forbidden: User "${USER}" cannot`, 's'),
      );
    }
  });

  it.runIf(hasPolicies)('may change the CA bundle of its webhook, and nothing else of it', async () => {
    const { webhooks } = await get<{ webhooks: { clientConfig: { caBundle: string } }[] }>(
      'mutatingwebhookconfiguration',
      WEBHOOKS,
    );
    const bundle = webhooks[0]?.clientConfig.caBundle ?? '';
    const twice = Buffer.concat([Buffer.from(bundle, 'base64'), Buffer.from(bundle, 'base64')]);
    await patchWebhook(WEBHOOKS, {
      op: 'replace',
      path: '/webhooks/0/clientConfig/caBundle',
      value: twice.toString('base64'),
    });
    for (const [path, value] of [
      ['/webhooks/0/failurePolicy', 'Fail'],
      ['/webhooks/0/clientConfig/service/namespace', SHOP],
      ['/webhooks/0/namespaceSelector', {}],
      ['/webhooks/0/rules/0/resources', ['pods', 'secrets']],
      ['/metadata/labels/token-sidecar.dev~1mine', 'yes'],
      ['/metadata/finalizers', ['example.com/stays']],
    ] as const) {
      await expect(patchWebhook(WEBHOOKS, { op: 'add', path, value }), path).rejects.toThrow(
        'the injector may change nothing of its webhook but the CA bundle',
      );
    }
  });

  it('may do what the documentation says where it looks for pods, heals them and looks for Secrets', async () => {
    await installChart(WITH_EVERYTHING);
    expect(await permissionsOf(ACCOUNT, SHOP)).toEqual(sorted(...EVERYWHERE, ...MORE_EVERYWHERE));
    expect(await permissionsOf(ACCOUNT, NAMESPACE)).toEqual(
      sorted(...EVERYWHERE, ...MORE_EVERYWHERE, ...IN_ITS_NAMESPACE, ...MORE_IN_ITS_NAMESPACE),
    );
  });

  it.runIf(hasPolicies)('is refused the webhook of another, even if it is given the permission', async () => {
    await apply({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: MORE },
      webhooks: [
        {
          name: 'other.example.com',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          clientConfig: { service: { name: 'other', namespace: SHOP } },
          rules: [],
        },
      ],
    });
    const toBundle = { op: 'add', path: '/webhooks/0/clientConfig/service/path', value: '/mine' };
    await expect(patchWebhook(MORE, toBundle)).rejects.toThrow(/is forbidden: User .* cannot (get|patch)/);
    await apply(
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: MORE },
        rules: [
          {
            apiGroups: ['admissionregistration.k8s.io'],
            resources: ['mutatingwebhookconfigurations'],
            verbs: ['*'],
          },
        ],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: MORE },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: MORE },
        subjects: [{ kind: 'ServiceAccount', name: `${RELEASE}-injector`, namespace: NAMESPACE }],
      },
    );
    const refusal = await eventually('the permission is there', 30, () =>
      patchWebhook(MORE, toBundle).then(
        (done) => done,
        ({ message }: Error) => (/ cannot (get|patch) /.test(message) ? undefined : message),
      ),
    );
    expect(refusal).toContain('the injector may change nothing of its webhook but the CA bundle');
  });
});
