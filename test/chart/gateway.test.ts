/** The gateway of the chart: what it may, what it is set by, and how it is replaced without a lost request. */

import { describe, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { parseConfig } from '../../src/config/file.ts';
import { resolveConfig } from '../../src/config/resolve-config.ts';
import { describeProblem, type Problem } from '../../src/platform/problems.ts';
import { type Manifest, manifests, NAMESPACE, template } from './manifests.ts';

const BOTH = 'gateway-values.yaml';
const ON_NODES = 'gateway-daemonset-values.yaml';
const GATEWAY = 'token-sidecar-gateway';
const HOST = `${GATEWAY}.${NAMESPACE}.svc`;

/** The object of a kind that is the gateway's. */
async function ofGateway(kind: string, ci: string, ...set: string[]): Promise<Manifest> {
  const found = await allOf(kind, ci, ...set);
  if (found.length !== 1) throw new Error(`${found.length} of kind ${kind}`);
  return found[0];
}

async function allOf(kind: string, ci: string, ...set: string[]): Promise<Manifest[]> {
  return (await manifests({ ci, set })).filter(
    (each) => each.kind === kind && each.metadata.labels?.['app.kubernetes.io/component'] === 'gateway',
  );
}

const podOf = async (ci: string, ...set: string[]): Promise<Manifest> =>
  (await ofGateway(ci === ON_NODES ? 'DaemonSet' : 'Deployment', ci, ...set)).spec.template.spec;

const configurationOf = async (ci: string, ...set: string[]): Promise<string> =>
  (await ofGateway('ConfigMap', ci, ...set)).data['token-sidecar.yaml'];

/** What the program makes of the configuration that the chart renders, but for the files that it names. */
async function loaded(ci: string, ...set: string[]): Promise<Config> {
  const problems: Problem[] = [];
  const reading = await parseConfig(await configurationOf(ci, ...set), 'token-sidecar.yaml', problems);
  const config = resolveConfig(reading, {}, problems);
  expect(problems.map(describeProblem)).toEqual([]);
  return config;
}

test('is not there unless it is asked for', async () => {
  const all = await manifests();
  expect(all.filter(({ metadata }) => metadata.name.includes('gateway'))).toEqual([]);
});

describe('its account', () => {
  test('may ask whose a token is and read the keys of the cluster, and reads nothing else', async () => {
    expect((await ofGateway('ClusterRole', BOTH)).rules).toEqual([
      { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
      { nonResourceURLs: ['/.well-known/openid-configuration', '/openid/v1/jwks'], verbs: ['get'] },
    ]);
    expect(await allOf('Role', BOTH)).toEqual([]);
    const account = await ofGateway('ServiceAccount', BOTH);
    expect((await podOf(BOTH)).serviceAccountName).toBe(account.metadata.name);
    expect((await ofGateway('ClusterRoleBinding', BOTH)).subjects).toEqual([
      { kind: 'ServiceAccount', name: account.metadata.name, namespace: NAMESPACE },
    ]);
  });

  test('may nothing and has no token where callers show certificates alone', async () => {
    for (const kind of ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']) {
      expect(await allOf(kind, ON_NODES)).toEqual([]);
    }
    expect((await podOf(ON_NODES)).automountServiceAccountToken).toBe(false);
    expect((await podOf(BOTH)).automountServiceAccountToken).toBe(true);
  });
});

describe('its configuration', () => {
  test('says to the program what the values say', async () => {
    const { gateway, credentials, routes, limits, accessLog, shutdown } = await loaded(BOTH);
    expect(gateway).toMatchObject({
      listen: { host: '0.0.0.0', port: 15_443 },
      serviceAccountTokens: { audience: 'token-sidecar-gateway' },
      clientCaFile: '/etc/token-sidecar/callers/ca.crt',
      callers: [
        { name: 'shop', routes: ['payments'], limits: { inFlight: 200, requestsPerSecond: 100 } },
        { name: 'reports', routes: ['crm'] },
      ],
      drainDelayMs: 5000,
    });
    expect(credentials.map(({ name, directory: dir }) => [name, dir])).toEqual([
      ['payments', '/var/run/secrets/token-sidecar/payments'],
      ['crm', '/var/run/secrets/token-sidecar/crm'],
    ]);
    expect(routes.map(({ name, credential }) => [name, credential])).toEqual([
      ['payments', 'payments'],
      ['crm', 'crm'],
    ]);
    expect(limits.maxInFlight).toBe(8000);
    expect(accessLog).toMatchObject({ requests: 'errors' });
    expect(shutdown.drainTimeoutMs).toBe(25_000);
  });

  test('names files that are mounted, each read-only', async () => {
    for (const ci of [BOTH, ON_NODES]) {
      const { gateway, credentials } = await loaded(ci);
      const [{ volumeMounts, env }] = (await podOf(ci)).containers;
      const directories = [
        env.find(({ name }: Manifest) => name === 'TOKEN_SIDECAR_CONFIG').value.replace(/\/[^/]+$/, ''),
        gateway?.tls.certFile.replace('/tls.crt', ''),
        gateway?.clientCaFile?.replace('/ca.crt', ''),
        ...credentials.map(({ directory: dir }) => dir),
      ];
      expect(volumeMounts.map(({ mountPath }: Manifest) => mountPath)).toEqual(directories);
      expect(volumeMounts.every(({ readOnly }: Manifest) => readOnly)).toBe(true);
    }
  });

  test('mounts of a Secret what is named, and of that with authorities no key', async () => {
    const volume = async (ci: string, name: string) =>
      (await podOf(ci)).volumes.find((each: Manifest) => each.name === name);
    expect(await volume(BOTH, 'credential-0')).toMatchObject({ secret: { secretName: 'payments-oauth' } });
    expect((await volume(BOTH, 'credential-1')).secret.items).toEqual([
      { key: 'username', path: 'client_id' },
      { key: 'password', path: 'client_secret' },
    ]);
    expect((await volume(BOTH, 'callers')).configMap.name).toBe('spiffe-authorities');
    expect((await volume(ON_NODES, 'callers')).secret).toMatchObject({
      secretName: 'callers-ca',
      items: [{ key: 'ca.crt', path: 'ca.crt' }],
    });
  });

  test('is followed without a new pod, but for what takes a restart', async () => {
    const podTemplate = async (...set: string[]) =>
      (await ofGateway('Deployment', BOTH, ...set)).spec.template;
    const before = await podTemplate();
    expect(await podTemplate('gateway.limits.inFlight=9', 'gateway.accessLog=all')).toEqual(before);
    expect(await podTemplate('gateway.serviceAccountTokens.audience=other')).not.toEqual(before);
    expect(await podTemplate('bindAddress=[::]')).not.toEqual(before);
  });

  test('leaves a directory of its own volumes to a credential without a Secret', async () => {
    const { credentials } = await loaded(
      ON_NODES,
      'gateway.credentials[1].name=vault',
      'gateway.credentials[1].authUrl=https://sso.example.com',
      'gateway.credentials[1].dir=/vault/secrets',
      'gateway.routes[0].match.pathPrefix=/sso/',
      'gateway.routes[1].name=vault',
      'gateway.routes[1].match.pathPrefix=/vault/',
      'gateway.routes[1].upstream=https://api.example.com',
      'gateway.routes[1].credential=vault',
    );
    expect(credentials[1]?.directory).toBe('/vault/secrets');
  });
});

describe('as a DaemonSet', () => {
  test('has a replica on each node, to which the callers of that node come', async () => {
    const { spec } = await ofGateway('DaemonSet', ON_NODES);
    expect(spec).not.toHaveProperty('replicas');
    expect(spec).not.toHaveProperty('strategy');
    expect(spec.updateStrategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
    expect(spec.template.spec).not.toHaveProperty('topologySpreadConstraints');
    const policy = async (ci: string, ...set: string[]) =>
      (await ofGateway('Service', ci, ...set)).spec.internalTrafficPolicy;
    expect(await policy(ON_NODES)).toBe('Local');
    expect(await policy(ON_NODES, 'gateway.service.internalTrafficPolicy=Cluster')).toBe('Cluster');
    expect(await policy(BOTH)).toBe('Cluster');
  });

  test('has no budget, which could not count its pods', async () => {
    expect(await allOf('PodDisruptionBudget', ON_NODES)).toEqual([]);
    expect((await ofGateway('PodDisruptionBudget', BOTH)).spec.maxUnavailable).toBe(1);
  });
});

test('an autoscaler has the number of replicas to itself, and looks at requests in flight where an adapter serves them', async () => {
  const cpu = {
    type: 'Resource',
    resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } },
  };
  expect((await ofGateway('Deployment', BOTH)).spec).not.toHaveProperty('replicas');
  expect((await ofGateway('HorizontalPodAutoscaler', BOTH)).spec).toEqual({
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: GATEWAY },
    minReplicas: 2,
    maxReplicas: 6,
    metrics: [
      cpu,
      {
        type: 'Pods',
        pods: {
          metric: { name: 'token_sidecar_gateway_requests_in_flight' },
          target: { type: 'AverageValue', averageValue: '200' },
        },
      },
    ],
  });
  const slow = 'gateway.autoscaling.behavior.scaleDown.stabilizationWindowSeconds=900';
  expect((await ofGateway('HorizontalPodAutoscaler', BOTH, slow)).spec.behavior).toEqual({
    scaleDown: { stabilizationWindowSeconds: 900 },
  });
  const without = await ofGateway(
    'HorizontalPodAutoscaler',
    BOTH,
    'gateway.autoscaling.requestsInFlight.enabled=false',
  );
  expect(without.spec.metrics).toEqual([cpu]);
  expect((await ofGateway('Deployment', BOTH, 'gateway.autoscaling.enabled=false')).spec.replicas).toBe(2);
});

test('has longer until it is killed than it drains for', async () => {
  for (const ci of [BOTH, ON_NODES]) {
    const { terminationGracePeriodSeconds } = await podOf(ci);
    const { shutdown, gateway } = await loaded(ci);
    expect(terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(shutdown.drainTimeoutMs + 5000);
    expect(shutdown.drainTimeoutMs).toBeGreaterThan(gateway?.drainDelayMs ?? 0);
  }
});

test('is known by the names of its Service and those that are added, on the port that it listens on', async () => {
  const certificates = (await allOf('Certificate', BOTH)).filter(({ spec }) => spec.isCA !== true);
  expect(certificates.map(({ spec }) => spec)).toEqual([
    expect.objectContaining({
      secretName: `${GATEWAY}-certificate`,
      dnsNames: [HOST, `${HOST}.cluster.local`, `${GATEWAY}.${NAMESPACE}`, 'gateway.example.com'],
      issuerRef: { group: 'cert-manager.io', kind: 'Issuer', name: `${GATEWAY}-ca` },
    }),
  ]);
  expect((await ofGateway('Service', BOTH)).spec.ports).toContainEqual(
    expect.objectContaining({ port: 15_443, targetPort: 'https' }),
  );
  const mounted = async (ci: string) =>
    (await podOf(ci)).volumes.find(({ name }: Manifest) => name === 'certificates').secret.secretName;
  expect(await mounted(BOTH)).toBe(`${GATEWAY}-certificate`);
  expect(await mounted(ON_NODES)).toBe('gateway-tls');
  expect(await allOf('Certificate', ON_NODES)).toEqual([]);
});

test('a closed network lets callers in that are named, and it out to the API server, providers and upstreams', async () => {
  const { ingress, egress } = (await ofGateway('NetworkPolicy', BOTH)).spec;
  const tcp = (port: number | string) => ({ port, protocol: 'TCP' });
  expect(ingress[0]).toEqual({
    ports: [tcp('https')],
    from: [{ namespaceSelector: { matchLabels: { 'example.com/gateway': 'true' } } }],
  });
  expect(egress).toEqual([
    { ports: [tcp(443), tcp(6443)], to: [{ ipBlock: { cidr: '198.51.100.1/32' } }] },
    { ports: [53, 5353].flatMap((port) => [{ port, protocol: 'UDP' }, tcp(port)]) },
    { to: [{ ipBlock: { cidr: '192.0.2.0/24' } }] },
  ]);
  const open = await ofGateway('NetworkPolicy', ON_NODES, 'networkPolicy.enabled=true');
  expect(open.spec.egress).toEqual([{}]);
});

test.each([
  [BOTH, ['gateway.callers=null'], 'gateway.callers: name at least one'],
  [BOTH, ['gateway.routes=null'], 'gateway.routes: name at least one'],
  [BOTH, ['gateway.credentials=null'], 'gateway.credentials: name at least one'],
  [BOTH, ['gateway.credentials[0].dir=/vault'], 'gateway.credentials[0].dir: leave it out beside secret'],
  [BOTH, ['gateway.credentials[2].name=vault'], 'gateway.credentials[2].secret: name the Secret, or set dir'],
  [
    BOTH,
    ['gateway.clientCertificates.secret=a'],
    'gateway.clientCertificates: set either secret or configMap',
  ],
  [
    BOTH,
    ['gateway.clientCertificates.configMap=', 'gateway.serviceAccountTokens.enabled=false'],
    'because no caller could prove who it is',
  ],
  [
    BOTH,
    ['gateway.drainSeconds=35'],
    'gateway.terminationGracePeriodSeconds: set more than gateway.drainSeconds, which is 35',
  ],
  [
    BOTH,
    ['gateway.certificates.source=existing'],
    'gateway.certificates.existing.secretName: name the TLS Secret',
  ],
  [BOTH, ['gateway.certificates.source=helm'], 'gateway/certificates/source'],
  [BOTH, ['gateway.kind=StatefulSet'], 'gateway/kind'],
  [
    BOTH,
    ['gateway.kind=DaemonSet'],
    'gateway.autoscaling.enabled: set it to false with gateway.kind DaemonSet',
  ],
  [
    BOTH,
    ['gateway.autoscaling.minReplicas=7'],
    'gateway.autoscaling.maxReplicas: 6 is less than minReplicas',
  ],
  [
    BOTH,
    ['networkPolicy.apiServerTo=null'],
    'networkPolicy.apiServerTo: name the API server with networkPolicy.gatewayTo',
  ],
  [BOTH, ['gateway.serviceAccount.create=false'], 'gateway.serviceAccount.name: name the account'],
  [
    ON_NODES,
    ['gateway.strategy.type=Recreate'],
    'gateway.strategy.type: a DaemonSet has RollingUpdate or OnDelete',
  ],
  [
    BOTH,
    ['gateway.strategy.type=OnDelete'],
    'gateway.strategy.type: a Deployment has RollingUpdate or Recreate',
  ],
  [ON_NODES, ['gateway.callers[0].match.everybody=true'], 'everybody'],
  [ON_NODES, ['gateway.credentials[0].output.endpoint=true'], 'output'],
  [ON_NODES, ['gateway.routes[0].upstrem=https://x.example.com'], 'upstrem'],
])('%s with %j is refused', async (ci, set, why) => {
  const { ok, stderr } = await template({ ci, set });
  expect(ok).toBe(false);
  expect(stderr).toContain(why);
});
