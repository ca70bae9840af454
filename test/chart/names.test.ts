/** Names of releases, namespaces and Secrets: whatever Kubernetes takes, the chart takes. */

import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type Manifest, manifests, only } from './manifests.ts';
import { CHART, run } from './tools.ts';

const EVERY_COMPONENT = [
  ...['crds.enabled=true', 'injector.profiles.enabled=true', 'networkPolicy.enabled=true'],
  ...['broker.enabled=true', 'broker.secrets={shop}'],
  ...[
    'injector.enabled=true',
    'monitoring.podMonitor.enabled=true',
    'monitoring.serviceMonitor.enabled=true',
  ],
  ...['monitoring.prometheusRule.enabled=true', 'monitoring.dashboard.enabled=true'],
  ...['issuer.enabled=true', 'issuer.clients.secrets={shop}'],
];

interface Release {
  readonly name: string;
  readonly namespace: string;
  /** By `--set-string`. */
  readonly set?: readonly string[];
}

/** Read as the API server's clients read it, to which `on` is a boolean. */
async function objectsOf({ name, namespace, set = [] }: Release): Promise<Manifest[]> {
  const { ok, stdout, stderr } = await run('helm', [
    ...['template', name, CHART, '--namespace', namespace, '--kube-version', '1.34.0'],
    ...['--values', `${CHART}/ci/gateway-values.yaml`],
    ...EVERY_COMPONENT.flatMap((value) => ['--set', value]),
    ...set.flatMap((value) => ['--set-string', value]),
  ]);
  expect(ok, stderr).toBe(true);
  return parseAllDocuments(stdout, { version: '1.1' }).flatMap((document) => document.toJS() ?? []);
}

/** Paths of names and labels that are no text. */
function misread(value: unknown, path: string): string[] {
  if (value === null || typeof value !== 'object') {
    return /([nN]ame|namespace|\.values\.\d+)$/.test(path) && typeof value !== 'string' ? [path] : [];
  }
  return Object.entries(value).flatMap(([key, inner]) => {
    const isLabels = /[lL]abels$/.test(path) && typeof inner !== 'string';
    return isLabels ? [`${path}.${key}`] : misread(inner, `${path}.${key}`);
  });
}

test.each([
  [
    'a release and a namespace of digits',
    { name: '123', namespace: '456', set: ['fullnameOverride=tokens'] },
  ],
  ['a release called on, in a namespace called no', { name: 'on', namespace: 'no' }],
  [
    'a chart, accounts and Secrets of digits',
    {
      name: 'tokens',
      namespace: 'token-sidecar',
      set: [
        ...[
          'nameOverride=123',
          'namespaceOverride=1e3',
          'issuer.serviceAccount.name=1',
          'issuer.runtimeClassName=2',
        ],
        ...['injector.serviceAccount.name=3', 'injector.schedulerName=4', 'broker.serviceAccount.name=5'],
        ...['gateway.serviceAccount.name=6', 'gateway.certificates.certManager.issuerRef.name=7'],
        ...['gateway.clientCertificates.configMap=8', 'injector.clientVerification.configMap=9'],
        ...['global.priorityClassName=10', 'issuer.signingKey.existingSecret=11'],
      ],
    },
  ],
] as const)('%s are text wherever they stand', async (_, release) => {
  const objects = await objectsOf(release);
  expect(objects.length).toBeGreaterThan(30);
  // In a schema of labels, `matchLabels` has no labels.
  const labelled = objects.map(({ kind, spec, ...rest }) =>
    kind === 'CustomResourceDefinition' ? { kind, ...rest } : { kind, spec, ...rest },
  );
  expect(labelled.flatMap((object) => misread(object, object.kind))).toEqual([]);
});

test('where names are as long as they may be, no two objects of a kind have one', async () => {
  const objects = await objectsOf({ name: 'r'.repeat(53), namespace: 'n'.repeat(63) });
  const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''} ${metadata.name}`);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  for (const { metadata } of objects) expect(metadata.name.length).toBeLessThanOrEqual(253);
});

test('a client of the issuer may be in a Secret of any name', async () => {
  const secrets = ['shop.oauth', `${'long-'.repeat(16)}name`];
  const set = ['issuer.enabled=true', `issuer.clients.secrets={${secrets.join(',')}}`];
  const issuer = (await manifests({ set })).filter(
    ({ metadata }) => metadata.name === 'token-sidecar-issuer',
  );
  const { containers, volumes } = only(issuer, 'Deployment').spec.template.spec;
  const ofClients = volumes.filter(({ secret }: Manifest) => secrets.includes(secret?.secretName));

  expect(ofClients.map(({ secret }: Manifest) => secret.secretName)).toEqual(secrets);
  for (const [index, { name }] of ofClients.entries()) {
    expect(name).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
    const mount = containers[0].volumeMounts.find((each: Manifest) => each.name === name);
    expect(mount.mountPath).toBe(`/var/run/secrets/token-issuer/clients/${secrets[index]}`);
  }
});
