import { beforeAll, expect, it } from 'vitest';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { CLIENT_ID, CLIENT_SECRET, ISSUER, installChart } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { API_URL, callingTemplate, callsOn, type Pod, readyPods } from '../support/workload.ts';

const SHOP = 'profiles';
const API = API_URL.replace('SHOP', SHOP);

interface Profile {
  readonly status?: {
    readonly pods: number;
    readonly outdatedPods: number;
    readonly conditions: readonly { readonly status: string; readonly message: string }[];
  };
}

function profile(name: string, spec: object, kind = 'TokenProfile'): object {
  return {
    apiVersion: 'token-sidecar.dev/v1alpha1',
    kind,
    metadata: { name, ...(kind === 'TokenProfile' ? { namespace: SHOP } : {}) },
    spec,
  };
}

const credential = (secret: string, keys?: object) => ({
  authUrl: ISSUER,
  allowInsecureTokenUrl: true,
  audience: 'api',
  secret: { name: secret, ...(keys === undefined ? {} : { keys }) },
});

const spec = (pathPrefix: string, more: object = {}) => ({
  credentials: [credential(CLIENT_SECRET)],
  routes: [{ match: { pathPrefix }, upstream: API }],
  ...more,
});

inCluster('profiles', () => {
  useShop(SHOP);
  beforeAll(() => installChart({ 'crds.enabled': true, 'injector.profiles.enabled': true }));

  const deploy = (app: string, profiles: string): Promise<string> =>
    apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: app, namespace: SHOP },
      spec: {
        selector: { matchLabels: { app } },
        template: callingTemplate(app, {
          'token-sidecar.dev/inject': 'true',
          'token-sidecar.dev/profile': profiles,
        }),
      },
    });

  const statusOf = async (name: string, ...of: readonly string[]): Promise<NonNullable<Profile['status']>> =>
    eventually(`the profile ${name} is reported on`, 60, async () => {
      const { status } = await get<Profile>('tokenprofile', name, '-n', SHOP, ...of);
      return status;
    });

  it('are explained, and refused where they contradict themselves', async () => {
    expect(await kubectl('explain', 'tokenprofile.spec.credentials.secret.keys')).toContain(
      'Which key of the Secret holds each file',
    );
    await expect(apply(profile('nothing', { credentials: [credential(CLIENT_SECRET)] }))).rejects.toThrow(
      'say what the tokens are for: routes, hosts or credentials with an output',
    );
    await expect(apply(profile('two', spec('/', { mode: 'forward' })))).rejects.toThrow(
      'mode reverse goes with routes alone',
    );
  });

  it('are written by who may edit their namespace, and read by who may view it', async () => {
    const roles = ['admin', 'edit', 'view'] as const;
    await apply(
      ...roles.map((role) => ({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: `profiles-${role}`, namespace: SHOP },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: `shop-${role}` }],
      })),
    );
    const may = async (role: string, verb: string, ...what: readonly string[]): Promise<boolean> =>
      (
        await kubectl('auth', 'can-i', verb, ...what, '-n', SHOP, '--as', `shop-${role}`).catch(() => 'no')
      ).startsWith('yes');
    await eventually('Kubernetes has added the rules to its roles', 30, async () =>
      (await Promise.all(roles.map((role) => may(role, 'get', 'tokenprofiles')))).every(Boolean),
    );
    for (const verb of ['create', 'update', 'patch', 'delete']) {
      expect(await Promise.all(roles.map((role) => may(role, verb, 'tokenprofiles'))), verb).toEqual([
        true,
        true,
        false,
      ]);
    }
    for (const [verb, ...what] of [
      ['patch', 'tokenprofiles', '--subresource=status'],
      ['create', 'clustertokenprofiles'],
    ] as const) {
      const answers = await Promise.all(roles.map((role) => may(role, verb, ...what)));
      expect(answers, what.join(' ')).toEqual([false, false, false]);
    }
  });

  it('two on one pod: each has its Secret, and requests go by their paths', async () => {
    await apply(
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'renamed', namespace: SHOP },
        stringData: { username: CLIENT_ID, password: 'first' },
      },
      profile('all', spec('/')),
      profile('orders', {
        ...spec('/orders/'),
        credentials: [credential('renamed', { client_id: 'username', client_secret: 'password' })],
      }),
    );
    await eventually('both are valid', 60, async () => {
      const all = [await statusOf('all'), await statusOf('orders')];
      return all.every(({ conditions }) => conditions[0]?.status === 'True') || undefined;
    });
    await deploy('two', 'all, orders');
    const [pod] = await readyPods(SHOP, 'two', 1);
    expect(await callsOn(pod as Pod, 50)).toMatchObject({ failed: 0 });
    expect(pod?.metadata.annotations).toMatchObject({
      'token-sidecar.dev/profiles-in-use': 'TokenProfile/all@1, TokenProfile/orders@1',
    });
    const metrics = await kubectl(
      ...(['get', '--raw'] as const),
      `/api/v1/namespaces/${SHOP}/pods/${pod?.metadata.name}:15081/proxy/metrics`,
    );
    expect(metrics).toContain('token_sidecar_token_ready{credential="all"} 1');
    expect(metrics).toContain('token_sidecar_token_ready{credential="orders"} 1');
    await eventually(
      'the pod is counted',
      60,
      async () => (await statusOf('orders')).pods === 1 || undefined,
    );
  });

  it('changed: pods keep what they were made with until they are made anew', async () => {
    await apply(profile('changing', spec('/')));
    await statusOf('changing');
    await deploy('changing', 'changing');
    await readyPods(SHOP, 'changing', 1);
    await apply(profile('changing', spec('/changed/')));
    await eventually('the pod is outdated', 60, async () => {
      const { pods, outdatedPods } = await statusOf('changing');
      return (pods === 1 && outdatedPods === 1) || undefined;
    });
    await kubectl('-n', SHOP, 'rollout', 'restart', 'deployment/changing');
    await kubectl('-n', SHOP, 'rollout', 'status', 'deployment/changing', '--timeout=120s');
    await eventually('no pod is outdated', 60, async () => {
      const { pods, outdatedPods } = await statusOf('changing');
      return (pods === 1 && outdatedPods === 0) || undefined;
    });
  });

  it('of the cluster: a namespace that is not admitted is refused, and says so at the owner', async () => {
    const admitting = (namespaces: object) =>
      profile('shared', { ...spec('/'), namespaces }, 'ClusterTokenProfile');
    await apply(admitting({ names: ['elsewhere'] }));
    await deploy('shared', 'shared');
    await eventually('the ReplicaSet is refused its pod', 60, async () => {
      const messages = await kubectl('-n', SHOP, 'get', 'events', '-o', 'jsonpath={.items[*].message}');
      return messages.includes(`a ClusterTokenProfile that admits the namespace ${SHOP}`) || undefined;
    });
    await apply(admitting({ selector: { matchLabels: { 'kubernetes.io/metadata.name': SHOP } } }));
    const [pod] = await readyPods(SHOP, 'shared', 1, 180);
    expect(await callsOn(pod as Pod, 20)).toMatchObject({ failed: 0 });
  });

  it('are left as they are by an uninstall', async () => {
    const crds = await kubectl(
      'get',
      'crd',
      'tokenprofiles.token-sidecar.dev',
      '-o',
      'jsonpath={.metadata.annotations}',
    );
    expect(crds).toContain('"helm.sh/resource-policy":"keep"');
  });
});
