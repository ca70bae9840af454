import { expect, test } from 'vitest';
import { template } from './manifests.ts';

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
  ['a URL without a scheme', ['sidecar.authUrl=sso.example.com'], /sidecar\/authUrl.*does not match/s],
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
    ['injector.kubernetesApi.checkSecrets=true', 'injector.kubernetesApi.enabled=false'],
    /injector\.kubernetesApi\.enabled: the injector needs the API when injector\.kubernetesApi\.checkSecrets/,
  ],
  [
    'a provider in clear',
    ['sidecar.authUrl=http://sso.example.com'],
    /sidecar\.authUrl: http needs sidecar\.allowInsecureTokenUrl/,
  ],
  [
    'a life of a certificate that is too short',
    ['injector.certificates.selfManaged.lifetime=3m'],
    /lifetime/,
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
])('%s is refused by name', async (_, set, message) => {
  const { ok, stderr } = await template({ set });

  expect(ok).toBe(false);
  expect(stderr).toMatch(message);
});

test('enforcement on a cluster without ValidatingAdmissionPolicy is refused', async () => {
  const { ok, stderr } = await template({ set: ['injector.webhook.enforce=true'], kubernetes: '1.29' });

  expect(ok).toBe(false);
  expect(stderr).toContain('injector.webhook.enforce: needs Kubernetes 1.30 or later, this is v1.29.0');
});
