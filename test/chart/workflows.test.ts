import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { ROOT, run } from './tools.ts';

/** Other linters that it would call are left out: what a machine happens to have must not decide. */
const ALONE = ['-shellcheck=', '-pyflakes='];

test('the workflows of CI and release are what GitHub takes', async () => {
  const { ok, stdout, stderr } = await run('actionlint', ALONE);

  expect(ok, stdout + stderr).toBe(true);
});

test('a workflow with a wrong job is found', async () => {
  const files = await readdir(`${ROOT}.github/workflows`);
  expect(files).toContain('release.yml');
  const release = await readFile(`${ROOT}.github/workflows/release.yml`, 'utf8');
  const { ok, stdout } = await run('actionlint', [...ALONE, '-'], {
    input: release.replace('needs: image', 'needs: picture'),
  });

  expect(ok).toBe(false);
  expect(stdout).toContain('picture');
});
