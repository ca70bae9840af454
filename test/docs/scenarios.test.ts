import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './blocks.ts';

it('the page about Kubernetes has a row for each scenario that is played on a node', () => {
  const page = readFileSync(join(ROOT, 'docs/reference/kubernetes.md'), 'utf8');
  const rows = [...page.matchAll(/^\| \[[^\]]+\]\(\.\.\/\.\.\/test\/cluster\/scenarios\/([^)]+)\)/gm)];
  const scenarios = readdirSync(join(ROOT, 'test/cluster/scenarios'));
  expect(rows.map(([, file]) => file).sort()).toEqual(scenarios.sort());
});
