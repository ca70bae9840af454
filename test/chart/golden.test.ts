import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { ciValues, rendered } from './manifests.ts';
import { CHART } from './tools.ts';

/** What differs at every rendering (the made certificate) and what has a test of its own (dashboard, rules). */
function masked(text: string): string {
  return text
    .replace(/^( +)(ca\.crt|tls\.crt|tls\.key|caBundle): .+$/gm, '$1$2: (masked)')
    .replace(/^( {2}token-sidecar\.json: \|-)\n(?: {4}.*\n?)*/gm, '$1 (masked)\n')
    .replace(/^( {2}groups:)\n(?: {4}.*\n?)*/gm, '$1 (masked)\n');
}

test.each(await ciValues())('%s renders as it did', async (ci) => {
  await expect(masked(await rendered({ ci }))).toMatchFileSnapshot(
    `golden/${ci.replace('-values.yaml', '.golden')}`,
  );
});

test('values-ha.yaml is the one that is tested', async () => {
  expect(await readFile(`${CHART}/ci/ha-values.yaml`, 'utf8')).toBe(
    await readFile(`${CHART}/values-ha.yaml`, 'utf8'),
  );
});
