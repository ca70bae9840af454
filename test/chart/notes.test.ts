import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeApiServer, startFakeApiServer } from './fake-api-server.ts';
import { NAMESPACE } from './manifests.ts';
import { CHART, run } from './tools.ts';

let directory: string;
let cluster: FakeApiServer;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'notes-'));
  cluster = await startFakeApiServer(directory);
});

afterAll(async () => {
  await cluster.close();
  await rm(directory, { recursive: true });
});

/** What `helm install` prints at its end. */
const notes = (...set: string[]): Promise<string> => notesWith([], set);

async function notesWith(args: readonly string[], set: readonly string[] = []): Promise<string> {
  const { ok, stdout, stderr } = await run('helm', [
    'install',
    'token-sidecar',
    CHART,
    '--namespace',
    NAMESPACE,
    '--dry-run=server',
    '--disable-openapi-validation',
    '--kubeconfig',
    cluster.kubeconfig,
    ...args,
    ...set.flatMap((value) => ['--set', value]),
  ]);
  if (!ok) throw new Error(stderr);
  return stdout.slice(stdout.indexOf('NOTES:'));
}

test('a first installation is told how to get a token and what happens while the injector is away', async () => {
  const text = await notes();

  expect(text).toContain('token-sidecar.dev/inject: "true"');
  expect(text).toContain('token-sidecar.dev/auth-url: https://sso.example.com');
  expect(text).toContain('rollout status deployment/token-sidecar-injector');
  expect(text).toContain('new pods that ask for the sidecar are refused with the reason');
  expect(text).toMatch(/up to 16 minutes\. This makes them at once:\n\n {2}kubectl .* rollout restart/);
  expect(text).not.toContain('Helm made the serving certificate');
  expect(text).not.toContain('Token Issuance Service');
});

test('without enforcement it says that pods start without the sidecar while the injector is away', async () => {
  expect(await notes('injector.webhook.enforce=false')).toContain('new pods start without the sidecar');
});

test('annotations that the values make needless are not asked for', async () => {
  expect(await notes('sidecar.authUrl=https://sso.example.com')).not.toContain('token-sidecar.dev/auth-url');
});

test('with the issuer it says where tokens and keys are, and that its key is not kept', async () => {
  const text = await notes('issuer.enabled=true', 'issuer.clients.secrets={shop}');

  expect(text).toContain(
    'POST http://token-sidecar-issuer.token-sidecar.svc:15090/realms/dx/protocol/openid-connect/token',
  );
  expect(text).toContain('http://token-sidecar-issuer.token-sidecar.svc:15091/jwks');
  expect(text).toContain('issuer.signingKey.existingSecret');
  expect(text).not.toContain('Istio');
});

test('with the issuer and an injecting Istio it warns of the port that both want', async () => {
  const text = await notes(
    'issuer.enabled=true',
    'issuer.clients.secrets={shop}',
    'issuer.istioInjection=true',
  );

  expect(text).toContain('15090 is also the telemetry port');
});

test('a certificate that Helm made is told of, with what cannot keep it', async () => {
  const text = await notes('injector.certificates.source=helm');

  expect(text).toContain('valid for 3650 days');
  expect(text).toContain('injector.certificates.source=cert-manager');
});

test('rules without what they are evaluated on are warned of', async () => {
  const rules = 'monitoring.prometheusRule.enabled=true';
  expect(await notes(rules)).toContain('Set monitoring.serviceMonitor.enabled=true');
  expect(await notes(rules, 'monitoring.serviceMonitor.enabled=true')).not.toContain('WARNING');
  expect(await notes()).not.toContain('WARNING');
});

test('it says how to upgrade and uninstall', async () => {
  const text = await notes();

  expect(text).toContain(
    'helm upgrade token-sidecar CHART --namespace token-sidecar --reset-then-reuse-values',
  );
  expect(text).toContain('helm uninstall token-sidecar --namespace token-sidecar');
});

test('with the gateway it says where callers come, and by what they prove who they are', async () => {
  const values = ['--values', `${CHART}/ci/gateway-daemonset-values.yaml`];
  const onNodes = await notesWith(values);
  expect(onNodes).toContain('https://token-sidecar-gateway.token-sidecar.svc:15443');
  expect(onNodes).toContain('rollout status daemonset/token-sidecar-gateway');
  expect(onNodes).toContain('helm upgrade token-sidecar CHART');
  expect(onNodes).not.toContain('service account token');
  expect(onNodes).not.toContain('serves as a library');
  const on = ['gateway.kind=Deployment', 'gateway.serviceAccountTokens.enabled=true'];
  const text = await notesWith(values, on);
  expect(text).toContain('a service account token of the audience token-sidecar-gateway');
  expect(text).toContain('rollout status deployment/token-sidecar-gateway');
});

test('with the broker it says where Secrets are, what of them it may read, and by what its certificate is kept', async () => {
  const on = ['broker.enabled=true', 'injector.profiles.enabled=true'];
  const text = await notes(...on, 'broker.allSecrets=true');
  expect(text).toContain('rollout status deployment/token-sidecar-broker');
  expect(text).toContain('broker.certificates.source=cert-manager');
  expect(text).toContain('every Secret of that namespace: name those of its profiles in broker.secrets');
  expect(await notes(...on, 'broker.secrets={a}')).not.toContain('every Secret');
  expect(await notes()).not.toContain('broker');
});
