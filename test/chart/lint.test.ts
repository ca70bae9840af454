import { expect, test } from 'vitest';
import { ciValues } from './manifests.ts';
import { CHART, run } from './tools.ts';

test.each(await ciValues())('helm lint --strict finds nothing with %s', async (file) => {
  const { ok, stdout, stderr } = await run('helm', [
    'lint',
    '--strict',
    CHART,
    '--values',
    `${CHART}/ci/${file}`,
    '--kube-version',
    '1.30.0',
  ]);

  expect(ok, stdout + stderr).toBe(true);
  expect(stdout).not.toMatch(/\[(WARNING|ERROR)\]/);
});
