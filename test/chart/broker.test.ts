/** The broker of the chart: what it may, who knows of it, and by which certificate. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type Manifest, manifests, NAMESPACE, template } from './manifests.ts';

const UNNAMED = ['broker.enabled=true', 'injector.profiles.enabled=true'];
const ON = [...UNNAMED, 'broker.secrets={payments,crm}'];
const BROKER = 'token-sidecar-broker';
const HOST = `${BROKER}.${NAMESPACE}.svc`;

/** The object of a kind that is the broker's. */
const ofBroker = (kind: string, ...set: string[]): Promise<Manifest> => only(kind, [...ON, ...set]);

async function only(kind: string, set: string[]): Promise<Manifest> {
  const found = (await manifests({ set })).filter(
    (each) => each.kind === kind && each.metadata.labels?.['app.kubernetes.io/component'] === 'broker',
  );
  if (found.length !== 1) throw new Error(`${found.length} of kind ${kind}`);
  return found[0];
}

async function injectorPod(...set: string[]): Promise<Manifest> {
  const all = await manifests({ set });
  const found = all.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-injector'),
  );
  return found.spec.template.spec;
}

const brokerVariables = (pod: Manifest): object =>
  Object.fromEntries(
    pod.containers[0].env
      .filter(({ name }: { name: string }) => name.startsWith('TOKEN_SIDECAR_BROKER_'))
      .map(({ name, value }: Manifest) => [name, value]),
  );

test('is not there unless it is asked for, and no injector knows of it', async () => {
  const all = await manifests({ set: ['injector.profiles.enabled=true'] });
  expect(all.filter(({ metadata }) => metadata.name.includes('broker'))).toEqual([]);
  const pod = await injectorPod('injector.profiles.enabled=true');
  expect(brokerVariables(pod)).toEqual({});
  expect(JSON.stringify(pod)).not.toContain('broker');
});

describe('its account', () => {
  test('may ask whose a token is, and read the keys of the cluster, its profiles and labels of namespaces', async () => {
    expect((await ofBroker('ClusterRole')).rules).toEqual([
      { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
      { nonResourceURLs: ['/.well-known/openid-configuration', '/openid/v1/jwks'], verbs: ['get'] },
      {
        apiGroups: ['token-sidecar.dev'],
        resources: ['clustertokenprofiles'],
        verbs: ['list', 'watch'],
      },
      { apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'watch'] },
    ]);
  });

  test('may read Secrets of its own namespace alone, and of these the ones that are named, or all where that is said', async () => {
    const verbs = ['list', 'watch'];
    const role = await ofBroker('Role');
    expect(role.metadata.namespace).toBe(NAMESPACE);
    expect(role.rules).toEqual([
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['payments', 'crm'], verbs },
      { apiGroups: [''], resources: ['configmaps'], verbs },
    ]);
    expect((await only('Role', [...UNNAMED, 'broker.allSecrets=true'])).rules).toEqual([
      { apiGroups: [''], resources: ['secrets'], verbs },
      { apiGroups: [''], resources: ['configmaps'], verbs },
    ]);
  });

  test('is the one that the bindings name', async () => {
    const account = await ofBroker('ServiceAccount');
    const { serviceAccountName } = (await ofBroker('Deployment')).spec.template.spec;
    expect(serviceAccountName).toBe(account.metadata.name);
    for (const kind of ['ClusterRoleBinding', 'RoleBinding']) {
      expect((await ofBroker(kind)).subjects).toEqual([
        { kind: 'ServiceAccount', name: account.metadata.name, namespace: NAMESPACE },
      ]);
    }
  });
});

describe('the injector', () => {
  test('sends pods to the Service, by a port that it has, and gives them the CA alone', async () => {
    const pod = await injectorPod(...ON);
    expect(brokerVariables(pod)).toEqual({
      TOKEN_SIDECAR_BROKER_URL: `https://${HOST}:15084`,
      TOKEN_SIDECAR_BROKER_AUDIENCE: 'token-sidecar-broker',
      TOKEN_SIDECAR_BROKER_CA_FILE: '/etc/token-sidecar/broker-ca/ca.crt',
    });
    expect((await ofBroker('Service')).spec.ports).toContainEqual(expect.objectContaining({ port: 15084 }));
    expect(pod.containers[0].volumeMounts).toContainEqual({
      name: 'broker-ca',
      mountPath: '/etc/token-sidecar/broker-ca',
      readOnly: true,
    });
    expect(pod.volumes).toContainEqual({
      name: 'broker-ca',
      secret: {
        secretName: 'token-sidecar-broker-certificate',
        defaultMode: 0o440,
        items: [{ key: 'ca.crt', path: 'ca.crt' }],
      },
    });
  });

  test('has the audience that the broker has', async () => {
    const set = ['broker.audience=tokens'];
    const [{ env }] = (await ofBroker('Deployment', ...set)).spec.template.spec.containers;
    expect(env).toContainEqual({ name: 'TOKEN_SIDECAR_AUDIENCE', value: 'tokens' });
    expect(brokerVariables(await injectorPod(...ON, ...set))).toMatchObject({
      TOKEN_SIDECAR_BROKER_AUDIENCE: 'tokens',
    });
  });

  test('leaves CAs to a ConfigMap of each namespace where one is named', async () => {
    const pod = await injectorPod(...ON, 'broker.certificates.caConfigMap=broker-ca');
    expect(brokerVariables(pod)).toMatchObject({ TOKEN_SIDECAR_BROKER_CA_CONFIG_MAP: 'broker-ca' });
    expect(brokerVariables(pod)).not.toHaveProperty('TOKEN_SIDECAR_BROKER_CA_FILE');
    expect(JSON.stringify(pod.volumes ?? [])).not.toContain('broker');
  });
});

describe('its certificate', () => {
  test('is for the name that pods know it by, of a CA that they are given', async () => {
    const { data } = await ofBroker('Secret');
    const pem = (key: string): string => Buffer.from(data[key], 'base64').toString();
    const ca = new X509Certificate(pem('ca.crt'));
    const served = new X509Certificate(pem('tls.crt'));
    expect(ca.ca).toBe(true);
    expect(served.checkIssued(ca) && served.verify(ca.publicKey)).toBe(true);
    expect(served.checkHost(HOST)).toBe(HOST);
    // A handshake costs half of what it does with RSA, as of the certificates of cert-manager: see the sizing in broker.md.
    for (const { publicKey } of [ca, served]) {
      expect(publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' });
    }
    expect(served.checkPrivateKey(createPrivateKey(pem('tls.key')))).toBe(true);
  });

  test('of cert-manager has the same names, and is signed by an own CA or by the issuer that is named', async () => {
    const set = [...ON, 'broker.certificates.source=cert-manager'];
    const certificates = async (...more: string[]): Promise<Manifest[]> =>
      (await manifests({ set: [...set, ...more] })).filter(({ kind }) => kind === 'Certificate');
    const [ca, serving] = (await certificates()).toSorted((a, b) =>
      a.metadata.name.localeCompare(b.metadata.name),
    );
    expect(ca.spec).toMatchObject({ isCA: true, secretName: `${BROKER}-ca` });
    expect(serving.spec.dnsNames).toContain(HOST);
    expect(serving.spec.issuerRef.name).toBe(`${BROKER}-ca`);
    const issuer = ['kind=ClusterIssuer', 'name=corporate'].map(
      (value) => `broker.certificates.certManager.issuerRef.${value}`,
    );
    const [signed, ...others] = await certificates(...issuer);
    expect(others).toEqual([]);
    expect(signed.spec.issuerRef).toMatchObject({ kind: 'ClusterIssuer', name: 'corporate' });
  });

  test('is the Secret that is named, and none is made', async () => {
    const set = ['source=existing', 'existing.secretName=mine'].map(
      (value) => `broker.certificates.${value}`,
    );
    const { volumes } = (await ofBroker('Deployment', ...set)).spec.template.spec;
    expect(volumes[0].secret.secretName).toBe('mine');
    await expect(ofBroker('Secret', ...set)).rejects.toThrow('0 of kind Secret');
  });
});

test('client secrets are laid out in memory, on a root that is read-only', async () => {
  const { containers, volumes } = (await ofBroker('Deployment')).spec.template.spec;
  expect(volumes).toContainEqual({ name: 'secrets', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } });
  expect(containers[0].securityContext.readOnlyRootFilesystem).toBe(true);
  expect(containers[0].env).toContainEqual({
    name: 'TOKEN_SIDECAR_SECRETS_DIR',
    value: containers[0].volumeMounts.find(({ name }: Manifest) => name === 'secrets').mountPath,
  });
});

test('an autoscaler has the number of replicas to itself', async () => {
  expect((await ofBroker('Deployment')).spec.replicas).toBe(2);
  const set = ['broker.autoscaling.enabled=true', 'broker.autoscaling.maxReplicas=9'];
  expect((await ofBroker('Deployment', ...set)).spec).not.toHaveProperty('replicas');
  expect((await ofBroker('HorizontalPodAutoscaler', ...set)).spec).toEqual({
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: BROKER },
    minReplicas: 2,
    maxReplicas: 9,
    metrics: [
      {
        type: 'Resource',
        resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } },
      },
    ],
  });
});

test('an autoscaler looks at requests in flight where a metrics adapter is said to serve them', async () => {
  const set = ['enabled=true', 'requestsInFlight.enabled=true', 'requestsInFlight.target=50'];
  const { metrics } = (
    await ofBroker('HorizontalPodAutoscaler', ...set.map((value) => `broker.autoscaling.${value}`))
  ).spec;
  expect(metrics.slice(1)).toEqual([
    {
      type: 'Pods',
      pods: {
        metric: { name: 'token_sidecar_broker_requests_in_flight' },
        target: { type: 'AverageValue', averageValue: '50' },
      },
    },
  ]);
});

test('as a DaemonSet it has a replica on each node, which the sidecars of that node ask', async () => {
  const { spec } = await ofBroker('DaemonSet', 'broker.kind=DaemonSet');
  expect(spec).not.toHaveProperty('replicas');
  expect(spec).not.toHaveProperty('strategy');
  expect(spec.updateStrategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
  expect(spec.template.spec).not.toHaveProperty('topologySpreadConstraints');
  const all = await manifests({ set: [...ON, 'broker.kind=DaemonSet'] });
  const budgets = all.filter(
    ({ kind, metadata }) => kind === 'PodDisruptionBudget' && metadata.name === BROKER,
  );
  expect(budgets).toEqual([]);
  const policy = async (...set: string[]) => (await ofBroker('Service', ...set)).spec.internalTrafficPolicy;
  expect(await policy()).toBe('Cluster');
  expect(await policy('broker.kind=DaemonSet')).toBe('Local');
  expect(await policy('broker.kind=DaemonSet', 'broker.service.internalTrafficPolicy=Cluster')).toBe(
    'Cluster',
  );
});

const PROVIDERS = 'networkPolicy.brokerTo[0].ipBlock.cidr=192.0.2.0/24';

test('a closed network lets it out to providers that are named, and to the API server', async () => {
  const closed = ['networkPolicy.enabled=true'];
  expect((await ofBroker('NetworkPolicy', ...closed)).spec.egress).toEqual([{}]);
  const named = [PROVIDERS, 'networkPolicy.apiServerTo[0].ipBlock.cidr=198.51.100.1/32'];
  const { egress } = (await ofBroker('NetworkPolicy', ...closed, ...named)).spec;
  const tcp = (port: number) => ({ port, protocol: 'TCP' });
  expect(egress).toEqual([
    { ports: [tcp(443), tcp(6443)], to: [{ ipBlock: { cidr: '198.51.100.1/32' } }] },
    // Names are looked up wherever the cluster has its DNS.
    { ports: [53, 5353].flatMap((port) => [{ port, protocol: 'UDP' }, tcp(port)]) },
    { to: [{ ipBlock: { cidr: '192.0.2.0/24' } }] },
  ]);
});

test.each([
  [
    ['broker.enabled=true', 'broker.secrets={a}'],
    'injector.profiles.enabled: set it to true with broker.enabled',
  ],
  [UNNAMED, 'broker.secrets: name the Secrets of profiles with via: broker, or set broker.allSecrets'],
  [
    ['broker.enabled=true', 'injector.enabled=false', 'issuer.enabled=true', 'issuer.clients.secrets={a}'],
    'broker.secrets: name the Secrets',
  ],
  [[...ON, 'broker.allSecrets=true'], 'broker.allSecrets: set it to false beside broker.secrets'],
  [
    [...ON, 'networkPolicy.enabled=true', PROVIDERS],
    'networkPolicy.apiServerTo: name the API server with networkPolicy.brokerTo',
  ],
  [
    [...ON, 'broker.autoscaling.enabled=true', 'broker.autoscaling.minReplicas=7'],
    'broker.autoscaling.maxReplicas: 6 is less than minReplicas, which is 7',
  ],
  [
    [...ON, 'broker.kind=DaemonSet', 'broker.autoscaling.enabled=true'],
    'broker.autoscaling.enabled: set it to false with broker.kind DaemonSet',
  ],
  [
    [...ON, 'broker.kind=DaemonSet', 'broker.strategy.type=Recreate'],
    'broker.strategy.type: a DaemonSet has RollingUpdate or OnDelete',
  ],
  [
    [...ON, 'broker.strategy.type=OnDelete'],
    'broker.strategy.type: a Deployment has RollingUpdate or Recreate',
  ],
  [[...ON, 'broker.autoscaling.behavior.scaleDown.policies[0].type=Pod'], 'behavior/scaleDown'],
  [
    [...ON, 'broker.certificates.source=existing'],
    'broker.certificates.existing.secretName: name the TLS Secret',
  ],
  [[...ON, 'broker.serviceAccount.create=false'], 'broker.serviceAccount.name: name the account'],
  [[...ON, 'broker.certificates.source=self-managed'], 'broker/certificates/source'],
])('%j is refused', async (set, why) => {
  const { ok, stderr } = await template({ set });
  expect(ok).toBe(false);
  expect(stderr).toContain(why);
});

describe('the cache of its tokens', () => {
  const CACHE = [
    'broker.cache.url=rediss://valkey.caches.svc:6379',
    'broker.cache.keySecret=cache-key',
    'broker.cache.authSecret=cache-auth',
    'broker.cache.caConfigMap=caches-ca',
  ];
  const settingsOf = (pod: Manifest): object =>
    Object.fromEntries(
      pod.containers[0].env
        .filter(({ name }: { name: string }) => name.startsWith('TOKEN_SIDECAR_CACHE_'))
        .map(({ name, value }: Manifest) => [name, value]),
    );

  test('is there where an address is said: its key, its password and its CA are mounted', async () => {
    const pod = (await ofBroker('Deployment', ...CACHE)).spec.template.spec;
    expect(settingsOf(pod)).toEqual({
      TOKEN_SIDECAR_CACHE_URL: 'rediss://valkey.caches.svc:6379',
      TOKEN_SIDECAR_CACHE_KEY_DIR: '/etc/token-sidecar/cache-key',
      TOKEN_SIDECAR_CACHE_AUTH_DIR: '/etc/token-sidecar/cache-auth',
      TOKEN_SIDECAR_CACHE_CA_FILE: '/etc/token-sidecar/cache-ca/ca.crt',
      TOKEN_SIDECAR_CACHE_TIMEOUT: '100ms',
    });
    const mounts = pod.containers[0].volumeMounts.filter(({ name }: Manifest) => name.startsWith('cache-'));
    expect(mounts.map(({ mountPath, readOnly }: Manifest) => [mountPath, readOnly])).toEqual([
      ['/etc/token-sidecar/cache-key', true],
      ['/etc/token-sidecar/cache-auth', true],
      ['/etc/token-sidecar/cache-ca', true],
    ]);
    const volumes = pod.volumes.filter(({ name }: Manifest) => name.startsWith('cache-'));
    expect(volumes).toMatchObject([
      { secret: { secretName: 'cache-key', defaultMode: 0o440 } },
      { secret: { secretName: 'cache-auth', defaultMode: 0o440 } },
      { configMap: { name: 'caches-ca' } },
    ]);
  });

  test('is verified by the public CAs, and asked without a password, where none are said', async () => {
    const pod = (await ofBroker('Deployment', ...CACHE.slice(0, 2))).spec.template.spec;
    expect(Object.keys(settingsOf(pod))).toEqual([
      'TOKEN_SIDECAR_CACHE_URL',
      'TOKEN_SIDECAR_CACHE_KEY_DIR',
      'TOKEN_SIDECAR_CACHE_TIMEOUT',
    ]);
  });

  test('is not there unless it is asked for', async () => {
    expect(JSON.stringify(await ofBroker('Deployment'))).not.toContain('cache');
  });

  test.each([
    ['clear text over the network', ['broker.cache.url=redis://valkey:6379'], 'broker.cache.url'],
    ['no key', CACHE.slice(0, 1), 'broker.cache.keySecret: name the Secret'],
    [
      'a key of no cache',
      ['broker.cache.keySecret=key'],
      'broker.cache.keySecret: set broker.cache.url with it',
    ],
    ['two CAs', [...CACHE, 'broker.cache.caSecret=ca'], 'broker.cache.caConfigMap: leave it empty'],
    ['a time that is too long', [...CACHE, 'broker.cache.timeout=3s'], 'broker.cache.timeout'],
  ])('is refused with %s', async (_, set, message) => {
    const { ok, stderr } = await template({ set: [...ON, ...set] });
    expect(ok).toBe(false);
    expect(stderr.replaceAll('/', '.')).toContain(message);
  });
});
