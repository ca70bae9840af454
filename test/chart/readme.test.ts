import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { CHART, run } from './tools.ts';

test('README.md is what helm-docs makes of the values and README.md.gotmpl', async () => {
  const { ok, stdout, stderr } = await run('helm-docs', [
    '--chart-search-root',
    CHART,
    '--dry-run',
    '--log-level',
    'error',
  ]);

  expect(ok, stderr).toBe(true);
  const committed = await readFile(`${CHART}/README.md`, 'utf8');
  expect(committed.trimEnd(), 'run .cache/tools/bin/helm-docs -c charts').toBe(stdout.trimEnd());
});

test('every value is described', async () => {
  const readme = await readFile(`${CHART}/README.md`, 'utf8');

  const undescribed = [...readme.matchAll(/^\| ([\w.]+) \| \w+ \| .* \| +\|$/gm)].map((match) => match[1]);
  expect(undescribed).toEqual([]);
});
