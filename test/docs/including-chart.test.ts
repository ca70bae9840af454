import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { CHART, run } from '../chart/tools.ts';
import { validate } from '../chart/validator.ts';
import { BLOCKS, type Block, type Kind, kindOf } from './blocks.ts';

const FILE = 'charts/token-sidecar/README.md';

function only(kind: Kind): Block {
  const found = BLOCKS.filter((block) => block.file === FILE && kindOf(block) === kind);
  expect(found, `one block of ${kind} in ${FILE}`).toHaveLength(1);
  return found[0] as Block;
}

const HEAD = `apiVersion: apps/v1
kind: Deployment
metadata: { name: shop }
spec:
  selector: { matchLabels: { app: shop } }
  template:
    metadata: { labels: { app: shop } }
`;

it('a chart that is written as the README says renders a valid Deployment with the sidecar', async () => {
  const chart = await mkdtemp(join(tmpdir(), 'token-sidecar-docs-'));
  onTestFinished(() => rm(chart, { recursive: true, force: true }));
  const { dependencies } = parse(only('dependencies').text) as { dependencies: { repository: string }[] };
  const local = dependencies.map((dependency) => ({ ...dependency, repository: `file://${CHART}` }));
  const about = { apiVersion: 'v2', name: 'shop', version: '1.0.0', dependencies: local };
  await mkdir(join(chart, 'templates'));
  await writeFile(join(chart, 'Chart.yaml'), stringify(about));
  await writeFile(join(chart, 'values.yaml'), only('values').text);
  await writeFile(join(chart, 'templates/deployment.yaml'), HEAD + only('template').text);

  const built = await run('helm', ['dependency', 'build', chart]);
  expect(built.ok, built.stderr).toBe(true);
  const { ok, stdout, stderr } = await run('helm', ['template', 'shop', chart, '--kube-version', '1.30.0']);

  expect(ok, stderr).toBe(true);
  expect(stdout).toContain('name: token-sidecar');
  const valid = await validate('1.30', new Map([['shop', stdout]]));
  expect(valid.ok, valid.stdout + valid.stderr).toBe(true);
});
