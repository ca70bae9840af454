import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type FakeApiServer, startFakeApiServer } from './fake-api-server.ts';
import { type Manifest, NAMESPACE, only, parseManifests } from './manifests.ts';
import { CHART, run } from './tools.ts';

const SECRET = `/api/v1/namespaces/${NAMESPACE}/secrets/token-sidecar-injector-certificates`;

let directory: string;
let cluster: FakeApiServer;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'certificates-'));
  cluster = await startFakeApiServer(directory);
});

afterAll(async () => {
  await cluster.close();
  await rm(directory, { recursive: true });
});

beforeEach(() => {
  cluster.objects.clear();
  cluster.requests.length = 0;
});

/** Renders as an upgrade does: templates may look objects up in the cluster. */
async function upgrade(...set: string[]): Promise<{ secret: Manifest; caBundle: string }> {
  const { ok, stdout, stderr } = await run('helm', [
    'template',
    'token-sidecar',
    CHART,
    '--namespace',
    NAMESPACE,
    '--is-upgrade',
    '--validate',
    '--dry-run=server',
    '--disable-openapi-validation',
    '--kubeconfig',
    cluster.kubeconfig,
    ...['injector.certificates.source=helm', ...set].flatMap((value) => ['--set', value]),
  ]);
  if (!ok) throw new Error(stderr);
  const all = parseManifests(stdout);
  return {
    secret: only(all, 'Secret'),
    caBundle: only(all, 'MutatingWebhookConfiguration').webhooks[0].clientConfig.caBundle,
  };
}

function certificate(base64: string): X509Certificate {
  return new X509Certificate(Buffer.from(base64, 'base64'));
}

test('a first installation makes a certificate that the webhook trusts, for the name the API server calls', async () => {
  const { secret, caBundle } = await upgrade();

  expect(cluster.requests).toContain(`GET ${SECRET}`);
  const ca = certificate(caBundle);
  const serving = certificate(secret.data['tls.crt']);
  expect(serving.verify(ca.publicKey)).toBe(true);
  expect(serving.checkHost('token-sidecar-injector.token-sidecar.svc')).toBeDefined();
  expect(serving.ca).toBe(false);
  expect(secret.data['ca.crt']).toBe(caBundle);
  expect(secret.type).toBe('kubernetes.io/tls');
});

test('an upgrade keeps the certificate and the CA', async () => {
  const first = await upgrade();
  cluster.objects.set(SECRET, first.secret);

  const second = await upgrade('injector.replicas=3');

  expect(second.secret.data).toEqual(first.secret.data);
  expect(second.caBundle).toBe(first.caBundle);
});

test('an upgrade can be told to make a new one', async () => {
  const first = await upgrade();
  cluster.objects.set(SECRET, first.secret);

  const second = await upgrade('injector.certificates.helm.regenerate=true');

  expect(second.caBundle).not.toBe(first.caBundle);
  expect(second.secret.data['ca.crt']).toBe(second.caBundle);
});

test('a Secret that lost its key is made anew, whole', async () => {
  const first = await upgrade();
  const { 'tls.key': _, ...incomplete } = first.secret.data;
  cluster.objects.set(SECRET, { ...first.secret, data: incomplete });

  const second = await upgrade();

  expect(Object.keys(second.secret.data).sort()).toEqual(['ca.crt', 'tls.crt', 'tls.key']);
  expect(second.caBundle).not.toBe(first.caBundle);
});

test('further keys of the Secret are not carried along', async () => {
  const first = await upgrade();
  cluster.objects.set(SECRET, { ...first.secret, data: { ...first.secret.data, other: 'eA==' } });

  const second = await upgrade();

  expect(second.secret.data).toEqual(first.secret.data);
});
