import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { CHART, run } from '../chart/tools.ts';
import { validate } from '../chart/validator.ts';
import { blocksOfKind } from './blocks.ts';

it.each(blocksOfKind('release'))('%s: a release with these values is valid', async (name, { text }) => {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-docs-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const values = join(directory, 'values.yaml');
  await writeFile(values, text);

  const rendering = ['template', 'token-sidecar', CHART, '--kube-version', '1.30.0', '--values', values];
  const { ok, stdout, stderr } = await run('helm', rendering);

  expect(ok, stderr).toBe(true);
  const valid = await validate('1.30', new Map([[name.replace(/\W/g, '-'), stdout]]));
  expect(valid.ok, valid.stdout + valid.stderr).toBe(true);
});
