import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { ADDRESSES, bracketed } from '../node/addresses.ts';
import { inPki } from '../node/certificates.ts';
import { FOLLOWS_PROVIDERS, trustProviders } from '../node/control-plane.ts';
import { apply } from '../node/kubectl.ts';
import { inPodNetwork } from '../node/pod-network.ts';
import { eventually, type RunOptions, run } from '../node/run.ts';
import { KUBERNETES_BIN } from '../node/versions.ts';
import { CLIENT_ID, installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { inClusterWhere, useShop } from '../support/scenario.ts';
import { provideTlsService } from '../support/tls-service.ts';
import { askingForSidecar, callingTemplate, callsOn, type Pod, readyPods } from '../support/workload.ts';

const SHOP = 'api-server-upstream';
/** As the API server and the sidecars know the provider: https, which the API server insists on. */
const PROVIDER = `https://${bracketed(ADDRESSES.fixedService)}`;
const USER = `oidc:${CLIENT_ID}`;

/** Where WebSockets fail kubectl goes on by SPDY, and says so only when it is talkative. */
const TELLS_OF_FALLBACK = '-v=4';
const FALLBACK = /fallback/i;

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
  const besidePod = (): Promise<readonly [string, ...string[]]> =>
    inPodNetwork(pod.status.containerStatuses?.[0]?.containerID ?? '');
  const asked = (args: readonly string[]): readonly string[] => [
    join(KUBERNETES_BIN, 'kubectl'),
    ...['--server=http://127.0.0.1:15080', '--namespace', SHOP, ...args],
  ];

  /** kubectl on the pod's loopback, where it asks the sidecar and has nothing to prove who it is. */
  async function kubectlInPod(
    args: readonly string[],
    { env, ...options }: Pick<RunOptions, 'env' | 'input'> = {},
  ): Promise<string> {
    const [enter, ...entered] = await besidePod();
    return run(enter, [...entered, ...asked(args)], {
      env: { KUBECONFIG: '/dev/null', ...env },
      timeoutMs: 60_000,
      ...options,
    });
  }

  /** The same, until the test ends. */
  async function runningKubectl(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<{ printed(): string; prints(pattern: RegExp): Promise<RegExpExecArray> }> {
    const [enter, ...entered] = await besidePod();
    const child = spawn(enter, [...entered, ...asked(args)], {
      env: { ...process.env, KUBECONFIG: '/dev/null', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let printed = '';
    for (const output of [child.stdout, child.stderr]) {
      output.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
      });
    }
    onTestFinished(async () => {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    });
    child.on('error', (error) => {
      printed += error.message;
    });
    return {
      printed: () => printed,
      prints: (pattern) =>
        eventually(`kubectl ${args.join(' ')} prints ${pattern}`, 30, async () => {
          const match = pattern.exec(printed);
          if (match === null) throw new Error(printed);
          return match;
        }),
    };
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
    const { printed, prints } = await runningKubectl([TELLS_OF_FALLBACK, ...echo]);
    await prints(/^42$/m);
    expect(printed()).not.toMatch(FALLBACK);
    // Before WebSockets kubectl spoke SPDY.
    expect(await kubectlInPod(echo, { env: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false' } })).toBe('42\n');
  });

  it('lets kubectl watch: what changes is told while the answer goes on', async () => {
    const { prints } = await runningKubectl(['get', 'configmaps', '--watch', '--output=name']);
    await prints(/^configmap\/kube-root-ca\.crt$/m);
    await kubectlInPod(['create', 'configmap', 'watched']);
    await prints(/^configmap\/watched$/m);
  });

  it.each(['true', 'false'])(
    'carries megabytes into a container and out again, as kubectl cp does; WebSockets: %s',
    async (websockets) => {
      const input = randomBytes(3 * 2 ** 20).toString('base64');
      const pass = ['node', '-e', 'process.stdin.pipe(process.stdout)'];
      const output = await kubectlInPod(['exec', '-i', pod.metadata.name, '-c', 'app', '--', ...pass], {
        env: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: websockets },
        input,
      });
      // Not the texts themselves: nobody could read their difference.
      expect(output === input, `${output.length} of ${input.length} characters came back`).toBe(true);
    },
  );

  it.each(['true', 'false'])('forwards a port of a pod; WebSockets: %s', async (websockets) => {
    const { printed, prints } = await runningKubectl(
      [TELLS_OF_FALLBACK, 'port-forward', `pod/${pod.metadata.name}`, ':8080'],
      { KUBECTL_PORT_FORWARD_WEBSOCKETS: websockets },
    );
    const [, port] = await prints(/^Forwarding from 127\.0\.0\.1:(\d+) -> 8080$/m);
    const [enter, ...entered] = await besidePod();
    const ask = `fetch('http://127.0.0.1:${port}/').then((answer) => answer.text()).then(console.log)`;
    // More than one: each is a stream of its own in the connection that is forwarded.
    for (let call = 0; call < 3; call++) {
      const answer = await run(enter, [...entered, process.execPath, '-e', ask]);
      expect(JSON.parse(answer)).toHaveProperty('calls');
    }
    expect(printed()).not.toMatch(FALLBACK);
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
        { apiGroups: [''], resources: ['pods/exec', 'pods/portforward'], verbs: ['get', 'create'] },
        { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch', 'create'] },
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
