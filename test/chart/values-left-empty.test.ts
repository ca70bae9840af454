/** A key with nothing below it, as where its lines are commented out: YAML makes it null, and Helm takes the default away. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type Manifest, manifests, only, template } from './manifests.ts';
import { CHART } from './tools.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'values-left-empty-'));
});
afterAll(() => rm(directory, { recursive: true }));

/** The same keys, each map and list that is empty by default left without a value; undefined where there is none. */
function leftEmpty(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return undefined;
  if (Object.keys(value).length === 0) return null;
  if (Array.isArray(value)) return undefined;
  const inner = Object.entries(value).map(([key, of]) => [key, leftEmpty(of)] as const);
  const kept = inner.filter(([, of]) => of !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

test('whatever is empty by default may be left without a value', async () => {
  const file = join(directory, 'values.json');
  await writeFile(file, JSON.stringify(leftEmpty(parse(await readFile(`${CHART}/values.yaml`, 'utf8')))));
  const { ok, stderr } = await template({
    set: [
      ...['injector.enabled=true', 'injector.profiles.enabled=true', 'networkPolicy.enabled=true'],
      ...[
        'broker.enabled=true',
        'broker.secrets={shop}',
        'issuer.enabled=true',
        'issuer.clients.secrets={shop}',
      ],
      ...['monitoring.podMonitor.enabled=true', 'monitoring.serviceMonitor.enabled=true'],
      ...['monitoring.prometheusRule.enabled=true', 'monitoring.dashboard.enabled=true'],
    ],
    args: ['--values', file, '--values', `${CHART}/ci/gateway-values.yaml`],
  });
  expect(ok, stderr).toBe(true);
});

test.each([
  'injector.strategy',
  'injector.topologySpreadConstraints',
  'injector.resources',
  'injector.allowed',
  'injector.webhook.excludedNamespaces',
  'sidecar.resources',
  'sidecar.resources.limits',
])('%s may be left without a value', async (key) => {
  const { ok, stderr } = await template({ set: [`${key}=null`] });
  expect(ok, stderr).toBe(true);
});

test('namespaces of the system are not served, whether or not they are listed', async () => {
  const all = await manifests({ set: ['injector.webhook.excludedNamespaces=null'] });
  const [webhook] = only(all, 'MutatingWebhookConfiguration').webhooks;
  const { values } = webhook.namespaceSelector.matchExpressions.find(
    ({ key }: Manifest) => key === 'kubernetes.io/metadata.name',
  );
  expect(values).toEqual(expect.arrayContaining(['kube-system', 'token-sidecar']));
});
