import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { issueCertificate } from '../../src/injector/certificate/certificate-authority.ts';
import { type FakeApiServer, startFakeApiServer } from './fake-api-server.ts';
import { type Manifest, NAMESPACE, only, parseManifests } from './manifests.ts';
import { CHART, run } from './tools.ts';

const WEBHOOK =
  '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/token-sidecar-token-sidecar-injector';
const SECRET = `/api/v1/namespaces/${NAMESPACE}/secrets/token-sidecar-injector-certificates`;

/** The webhook's annotation: since when CAs of before are trusted beside the newest. */
const TRUSTED_SINCE = 'token-sidecar.dev/ca-trusted-since';

const { ca: OWN_CA } = await issueCertificate({ hosts: ['own'], nowMs: Date.now(), lifetimeMs: 3_600_000 });

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
async function upgrade(...set: string[]): Promise<{ secret: Manifest; caBundle: string; webhook: Manifest }> {
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
  const webhook = only(all, 'MutatingWebhookConfiguration');
  return {
    secret: all.find(({ kind }) => kind === 'Secret'),
    caBundle: webhook.webhooks[0].clientConfig.caBundle,
    webhook,
  };
}

/** The certificates of a bundle, as the API server reads it. */
function authoritiesOf(caBundle: string): string[] {
  const pem = Buffer.from(caBundle, 'base64').toString();
  return (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (block) => new X509Certificate(block).fingerprint256,
  );
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

describe('while replicas show a certificate of before, the API server trusts its CA too', () => {
  /** As if it had been made so long ago. */
  function age({ metadata, ...webhook }: Manifest, minutes: number): Manifest {
    const since = metadata.annotations[TRUSTED_SINCE];
    expect(Math.abs(Date.now() - Date.parse(since))).toBeLessThan(60_000);
    const annotations = { [TRUSTED_SINCE]: new Date(Date.parse(since) - minutes * 60_000).toISOString() };
    return { ...webhook, metadata: { ...metadata, annotations } };
  }

  test('when a new one is made, for a quarter of an hour, however many upgrades there are', async () => {
    const first = await upgrade();
    expect(first.webhook.metadata.annotations).toBeUndefined();
    cluster.objects.set(SECRET, first.secret);
    cluster.objects.set(WEBHOOK, first.webhook);

    const second = await upgrade('injector.certificates.helm.regenerate=true');

    const [own] = authoritiesOf(second.secret.data['ca.crt']);
    expect(authoritiesOf(second.caBundle)).toEqual([own, ...authoritiesOf(first.caBundle)]);
    cluster.objects.set(SECRET, second.secret);
    const soon = age(second.webhook, 14);
    cluster.objects.set(WEBHOOK, soon);
    expect((await upgrade()).webhook).toEqual(soon);
    cluster.objects.set(WEBHOOK, age(second.webhook, 15));
    const last = await upgrade();
    expect(authoritiesOf(last.caBundle)).toEqual([own]);
    expect(last.webhook.metadata.annotations).toBeUndefined();
  });

  test('when another is made before those of the last one were left out', async () => {
    const first = await upgrade();
    cluster.objects.set(WEBHOOK, first.webhook);
    const second = await upgrade();
    cluster.objects.set(WEBHOOK, age(second.webhook, 60));

    const third = await upgrade();

    expect(authoritiesOf(third.caBundle)).toEqual([
      ...authoritiesOf(third.secret.data['ca.crt']),
      ...authoritiesOf(second.caBundle),
    ]);
    cluster.objects.set(SECRET, third.secret);
    cluster.objects.set(WEBHOOK, age(third.webhook, 0));
    expect((await upgrade()).caBundle).toBe(third.caBundle);
  });

  test("when the bundle holds the CA already, from before the injector's own", async () => {
    const first = await upgrade();
    cluster.objects.set(SECRET, first.secret);
    const [webhook] = first.webhook.webhooks;
    const before = Buffer.from(first.caBundle, 'base64').toString();
    const caBundle = Buffer.from(OWN_CA + before).toString('base64');
    cluster.objects.set(WEBHOOK, {
      ...first.webhook,
      webhooks: [{ ...webhook, clientConfig: { ...webhook.clientConfig, caBundle } }],
    });

    const back = await upgrade();

    const own = new X509Certificate(OWN_CA).fingerprint256;
    expect(authoritiesOf(back.caBundle)).toEqual([...authoritiesOf(first.caBundle), own]);
  });

  test('when the injector makes it from now on, or somebody else', async () => {
    const first = await upgrade();
    cluster.objects.set(WEBHOOK, first.webhook);

    const selfManaged = await upgrade('injector.certificates.source=self-managed');
    expect(selfManaged.caBundle).toBe(first.caBundle);

    const existing = await upgrade(
      'injector.certificates.source=existing',
      'injector.certificates.existing.secretName=tls',
      `injector.certificates.existing.caBundle=${OWN_CA}`,
    );
    expect(authoritiesOf(existing.caBundle)).toEqual([
      new X509Certificate(OWN_CA).fingerprint256,
      ...authoritiesOf(first.caBundle),
    ]);
  });

  test('but CAs do not add up without end', async () => {
    let last = await upgrade();
    for (let upgrades = 0; upgrades < 9; upgrades++) {
      cluster.objects.set(WEBHOOK, last.webhook);
      last = await upgrade();
    }
    expect(authoritiesOf(last.caBundle).length).toBeGreaterThan(1);
    expect(authoritiesOf(last.caBundle).length).toBeLessThan(9);
  });
});
