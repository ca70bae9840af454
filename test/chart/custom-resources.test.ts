/** The definitions of TokenProfile and ClusterTokenProfile in the chart. */

import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { type Manifest, manifests } from './manifests.ts';
import { CHART } from './tools.ts';

const definitions = async (...set: readonly string[]): Promise<Manifest[]> =>
  (await manifests({ set })).filter(({ kind }) => kind === 'CustomResourceDefinition');

test('are not installed unless the chart is told to', async () => {
  expect(await definitions()).toEqual([]);
});

test('stay when the release goes, unless it is told otherwise', async () => {
  const policies = async (...set: readonly string[]) =>
    (await definitions('crds.enabled=true', ...set)).map(({ metadata }) => metadata.annotations);
  expect(await policies()).toEqual(Array(2).fill({ 'helm.sh/resource-policy': 'keep' }));
  expect(await policies('crds.keep=false')).toEqual([undefined, undefined]);
});

test('are what is generated, to the letter', async () => {
  const installed = await definitions('crds.enabled=true');
  expect(installed).toHaveLength(2);
  for (const { metadata, spec } of installed) {
    const [plural, ...group] = metadata.name.split('.');
    const written = await readFile(`${CHART}/files/crds/${group.join('.')}_${plural}.yaml`, 'utf8');
    expect(spec).toEqual(parse(written).spec);
  }
});
