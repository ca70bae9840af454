import { expect, test } from 'vitest';
import { NEWEST_KUBERNETES, template } from './manifests.ts';
import { CHART, run } from './tools.ts';

test.each([
  ['an unknown key', ['injecter.replicas=2'], /additional properties 'injecter' not allowed/],
  ['an unknown key further down', ['injector.webhook.failPolicy=Fail'], /failPolicy/],
  ['text for a number', ['injector.replicas=two'], /replicas.*got string, want integer/s],
  ['a failure policy that does not exist', ['injector.webhook.failurePolicy=ignore'], /'Ignore', 'Fail'/],
  [
    'a timeout beyond what Kubernetes allows',
    ['injector.webhook.timeoutSeconds=60'],
    /maximum: got 60, want 30/,
  ],
  [
    'a certificate source that does not exist',
    ['injector.certificates.source=vault'],
    /'helm', 'cert-manager', 'self-managed', 'existing'/,
  ],
  [
    'a URL without a scheme',
    ['sidecar.authUrl=sso.example.com'],
    /sidecar\.authUrl: write a URL that begins with https:\/\/, .* instead of "sso\.example\.com"/,
  ],
  ['an upstream without a scheme', ['sidecar.upstream=api:80'], /sidecar\.upstream: write a URL/],
  [
    'an issuer whose URL has no scheme',
    ['issuer.enabled=true', 'issuer.clients.secrets={a}', 'issuer.authUrl=sso.example.com'],
    /issuer\.authUrl: write a URL/,
  ],
  ['a URL with a space', ['sidecar.authUrl=https://sso example'], /sidecar\/authUrl.*does not match/s],
  [
    'a host with a scheme',
    ['injector.allowed.authHosts={https://sso.example.com}'],
    /injector\.allowed\.authHosts: write a host without https:\/\/ and path/,
  ],
  [
    'a cache in clear',
    [
      'broker.enabled=true',
      'broker.secrets={a}',
      'broker.cache.url=redis://cache',
      'injector.profiles.enabled=true',
      'broker.cache.keySecret=k',
    ],
    /broker\.cache\.url: write it as rediss:\/\/HOST:PORT/,
  ],
  ['an image digest that is none', ['image.digest=latest'], /image\/digest.*does not match/s],
  ['a duration without a unit', ['issuer.tokenLifetime=300'], /tokenLifetime/],
  ['a log level that does not exist', ['sidecar.logLevel=verbose'], /sidecar\/logLevel/],
  ['a mode that does not exist', ['sidecar.mode=transparent'], /'reverse', 'forward'/],
  [
    'an existing certificate without its Secret',
    ['injector.certificates.source=existing'],
    /injector\.certificates\.existing\.secretName: name the TLS Secret/,
  ],
  [
    'an existing certificate without its CA',
    ['injector.certificates.source=existing', 'injector.certificates.existing.secretName=tls'],
    /injector\.certificates\.existing\.caBundle: give the PEM certificate/,
  ],
  [
    'a self-managed certificate without the API',
    ['injector.certificates.source=self-managed', 'injector.kubernetesApi.enabled=false'],
    /injector\.kubernetesApi\.enabled: the injector needs the API when injector\.certificates\.source/,
  ],
  [
    'a look for Secrets without the API',
    [
      'injector.certificates.source=helm',
      'injector.kubernetesApi.checkSecrets=true',
      'injector.kubernetesApi.enabled=false',
    ],
    /injector\.kubernetesApi\.enabled: the injector needs the API when injector\.kubernetesApi\.checkSecrets/,
  ],
  [
    'a look for pods without the API',
    [
      'injector.certificates.source=helm',
      'injector.kubernetesApi.watchPods=true',
      'injector.kubernetesApi.enabled=false',
    ],
    /injector\.kubernetesApi\.enabled: the injector needs the API when injector\.kubernetesApi\.watchPods/,
  ],
  [
    'a provider in clear',
    ['sidecar.authUrl=http://sso.example.com'],
    /sidecar\.authUrl: http needs sidecar\.allowInsecureTokenUrl/,
  ],
  ...[
    'tokenUrl=https://sso.example.com/token',
    'configMap=routes',
    'env[0].name=A',
    'preStopSeconds=7',
  ].flatMap((set): [string, string[], RegExp][] => {
    const what = `what is for included templates alone, sidecar.${set}`;
    const refused = new RegExp(`sidecar\\.${set.split(/[=[]/)[0]}: it is for charts that include`);
    return [
      [what, [`sidecar.${set}`], refused],
      [`${what}, without an injector`, [`sidecar.${set}`, 'injector.enabled=false'], refused],
    ];
  }),
  [
    'CAs of tenants where hosts are limited',
    ['sidecar.caConfigMap=cas', 'injector.allowed.upstreamHosts={*.example.com}'],
    /sidecar\.caConfigMap: leave it empty where injector\.allowed limits hosts/,
  ],
  [
    'a life of a certificate that is too short',
    ['injector.certificates.selfManaged.lifetime=3m'],
    /lifetime/,
  ],
  [
    'a client of the issuer without a name',
    ['issuer.enabled=true', 'issuer.clients.secrets[0]='],
    /issuer\/clients\/secrets\/0/,
  ],
  ['an issuer without clients', ['issuer.enabled=true'], /issuer\.clients: name at least one Secret/],
  [
    'an issuer with two sources of clients',
    ['issuer.enabled=true', 'issuer.clients.secrets={a}', 'issuer.clients.existingSecret=b'],
    /issuer\.clients: set either/,
  ],
  [
    'issuer replicas that would not share a key',
    ['issuer.enabled=true', 'issuer.clients.secrets={a}', 'issuer.replicas=2'],
    /issuer\.replicas: 2 replicas would each sign with a key of their own/,
  ],
  ['no replica', ['injector.replicas=0'], /injector\/replicas.*minimum: got 0, want 1/s],
  ['no replica of the issuer', ['issuer.replicas=0'], /issuer\/replicas.*minimum: got 0, want 1/s],
  ['a name in capitals', ['fullnameOverride=Tokens'], /fullnameOverride.*does not match/s],
  ['a name that no Service may have', ['fullnameOverride=1tokens'], /fullnameOverride.*does not match/s],
  ['a namespace with a dot', ['namespaceOverride=a.b'], /namespaceOverride.*does not match/s],
  [
    'a label that the chart sets',
    ['commonLabels.app\\.kubernetes\\.io/name=other'],
    /invalid propertyName 'app\.kubernetes\.io\/name'/,
  ],
  ['a label with a space', ['injector.podLabels.team=a b'], /podLabels\/team/],
  ['an image in capitals', ['image.repository=ghcr.io/Team/tokens'], /image\/repository/],
  ['a pull Secret without a name', ['imagePullSecrets[0].secret=a'], /imagePullSecrets/],
  ['a variable without a name', ['injector.env[0].value=a'], /injector\/env\/0/],
  ['a mount without a path', ['injector.volumeMounts[0].name=a'], /volumeMounts\/0/],
  [
    'a strategy that cannot roll',
    ['injector.strategy.type=Recreate', 'injector.strategy.rollingUpdate.maxSurge=1'],
    /injector\/strategy/,
  ],
  ['a probe that is never made', ['injector.livenessProbe.periodSeconds=0'], /periodSeconds/],
  ['a toleration of no operator', ['global.tolerations[0].operator=Is'], /global\/tolerations/],
  ['a scrape interval without a unit', ['monitoring.podMonitor.interval=1.5'], /podMonitor\/interval/],
  ['a realm that the issuer would not serve', ['issuer.realm=a/b'], /issuer\/realm/],
  ['tokens that never live', ['issuer.tokenLifetime=0s'], /tokenLifetime/],
  ['tokens that live too long', ['issuer.tokenLifetime=31d'], /tokenLifetime/],
  ['a quantity that is none', ['injector.resources.limits.memory=much'], /limits\/memory/],
])('%s is refused by name', async (_, set, message) => {
  const { ok, stderr } = await template({ set });

  expect(ok).toBe(false);
  expect(stderr).toMatch(message);
});

test.each([
  ['1st', undefined],
  ['my.tokens', 'my-tokens-token-sidecar-injector'],
])('a release named %s', async (release, service) => {
  const args = ['template', release, CHART, '--kube-version', `${NEWEST_KUBERNETES}.0`];
  const { ok, stdout, stderr } = await run('helm', args);

  expect(ok).toBe(service !== undefined);
  if (service === undefined) expect(stderr).toContain('does not begin with a letter');
  else expect(stdout).toContain(`kind: Service\nmetadata:\n  name: ${service}\n`);
});

test('enforcement on a cluster without ValidatingAdmissionPolicy is refused', async () => {
  const { ok, stderr } = await template({ set: ['injector.webhook.enforce=true'], kubernetes: '1.29' });

  expect(ok).toBe(false);
  expect(stderr).toContain('injector.webhook.enforce: needs Kubernetes 1.30 or later, this is v1.29.0');
});
