import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ADDRESSES, bracketed } from '../node/addresses.ts';
import { inPki } from '../node/certificates.ts';
import { FOLLOWS_PROVIDERS, trustProviders } from '../node/control-plane.ts';
import { apply } from '../node/kubectl.ts';
import { inPodNetwork } from '../node/pod-network.ts';
import { eventually, run } from '../node/run.ts';
import { KUBERNETES_BIN } from '../node/versions.ts';
import { CLIENT_ID, installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { inClusterWhere, useShop } from '../support/scenario.ts';
import { provideTlsService } from '../support/tls-service.ts';
import { askingForSidecar, callingTemplate, callsOn, type Pod, readyPods } from '../support/workload.ts';

const SHOP = 'api-server-upstream';
/** As the API server and the sidecars know the provider: https, which the API server insists on. */
const PROVIDER = `https://${bracketed(ADDRESSES.fixedService)}`;
const USER = `oidc:${CLIENT_ID}`;

/** Nobody in these pods has a kubeconfig, a certificate or a token of Kubernetes. */
const ANNOTATIONS = askingForSidecar(SHOP, {
  'token-sidecar.dev/upstream': 'https://kubernetes.default.svc',
  'token-sidecar.dev/audience': 'kubernetes',
  'token-sidecar.dev/auth-url': PROVIDER,
  'token-sidecar.dev/ca-config-map': 'kube-root-ca.crt',
});

inClusterWhere(FOLLOWS_PROVIDERS)('the API server, which trusts the provider, as the upstream', () => {
  useShop(SHOP);

  const deploy = async (app: string, env: Readonly<Record<string, string>>): Promise<Pod> => {
    await apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: app, namespace: SHOP },
      spec: {
        selector: { matchLabels: { app } },
        template: callingTemplate(app, ANNOTATIONS, env, { automountServiceAccountToken: false }),
      },
    });
    const [pod] = await readyPods(SHOP, app, 1);
    return pod as Pod;
  };

  let pod: Pod;
  /** kubectl on the pod's loopback, where it asks the sidecar and has nothing to prove who it is. */
  async function kubectlInPod(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const [enter, ...entered] = await inPodNetwork(pod.status.containerStatuses?.[0]?.containerID ?? '');
    const asked = ['--server=http://127.0.0.1:15080', '--namespace', SHOP, ...args];
    return run(enter, [...entered, join(KUBERNETES_BIN, 'kubectl'), ...asked], {
      env: { KUBECONFIG: '/dev/null', ...env },
      timeoutMs: 60_000,
    });
  }

  beforeAll(async () => {
    await provideTlsService({
      namespace: SHOP,
      name: 'front',
      program: 'front',
      address: ADDRESSES.fixedService,
      env: {
        TOKENS: `http://${RELEASE}-issuer.${NAMESPACE}.svc:15090`,
        DISCOVERY: `http://${RELEASE}-issuer.${NAMESPACE}.svc:15092`,
      },
    });
    await installChart({ 'issuer.authUrl': PROVIDER, 'issuer.adminUrl': PROVIDER });
    trustProviders([
      {
        issuer: {
          url: `${PROVIDER}/realms/dx`,
          certificateAuthority: readFileSync(inPki('ca.crt'), 'utf8'),
          audiences: ['kubernetes'],
        },
        claimMappings: { username: { claim: 'sub', prefix: 'oidc:' } },
      },
    ]);
    await apply(...permissions());
    pod = await deploy('operator', { INTERVAL_MS: '1000' });
    await eventually(
      'the API server knows who asks',
      120,
      async () =>
        (await kubectlInPod(['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}'])) === USER,
    );
  });
  afterAll(async () => {
    trustProviders([]);
    await installChart();
  });

  it('answers an app, longer than a token lives', async () => {
    const lister = await deploy('lister', {
      URL: `http://127.0.0.1:15080/api/v1/namespaces/${SHOP}/pods`,
      INTERVAL_MS: '100',
    });
    expect(await callsOn(lister, 350, 120)).toMatchObject({ failed: 0 });
  });

  it('answers kubectl: it lists, applies, follows logs and runs programs in containers', async () => {
    expect(await kubectlInPod(['get', 'pods'])).toContain(pod.metadata.name);
    await kubectlInPod(['create', 'configmap', 'made', '--from-literal=by=kubectl']);
    expect(await kubectlInPod(['get', 'configmap', 'made', '-o', 'jsonpath={.data.by}'])).toBe('kubectl');
    const target = pod.metadata.name;
    expect(await kubectlInPod(['logs', target, '-c', 'token-sidecar'])).toContain('"msg"');
    const echo = ['exec', target, '-c', 'app', '--', 'node', '-e', 'console.log(6 * 7)'];
    expect(await kubectlInPod(echo)).toBe('42\n');
    // Before WebSockets kubectl spoke SPDY.
    expect(await kubectlInPod(echo, { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false' })).toBe('42\n');
  });

  it('decides by the roles of that user what is allowed', async () => {
    await expect(kubectlInPod(['get', 'secrets'])).rejects.toThrow(
      `secrets is forbidden: User "${USER}" cannot list resource "secrets"`,
    );
  });
});

function permissions(): object[] {
  const metadata = { name: 'operator', namespace: SHOP };
  return [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata,
      rules: [
        { apiGroups: [''], resources: ['pods', 'pods/log'], verbs: ['get', 'list', 'watch'] },
        { apiGroups: [''], resources: ['pods/exec'], verbs: ['get', 'create'] },
        { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'operator' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: USER }],
    },
  ];
}
