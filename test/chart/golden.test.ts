import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { ciValues, rendered } from './manifests.ts';
import { CHART } from './tools.ts';

/** What differs at every rendering (the made certificate) and what has a test of its own (dashboard, rules, definitions). */
function masked(text: string): string {
  return text
    .replace(/^( +)(ca\.crt|tls\.crt|tls\.key|caBundle): .+$/gm, '$1$2: (masked)')
    .replace(/^( {2}token-sidecar\.json: \|-)\n(?: {4}.*\n?)*/gm, '$1 (masked)\n')
    .replace(/^( {2}groups:)\n(?: {4}.*\n?)*/gm, '$1 (masked)\n')
    .replace(
      /^(kind: CustomResourceDefinition\n(?:(?!spec:|---).*\n)*spec:)\n(?:(?: .*)?\n)*/gm,
      '$1 (masked)\n',
    );
}

const DEFAULT = 'default-values.yaml';

const documentsOf = (text: string): readonly string[] => text.split(/^---\n/m);

const usual = new Set(documentsOf(masked(await rendered({ ci: DEFAULT }))));

/** Only named where it is as the chart has it by default. */
function differing(document: string): string {
  const [source, kind, name] = [/^# Source: (.*)$/m, /^kind: (.*)$/m, /^ {2}name: (.*)$/m].map(
    (pattern) => pattern.exec(document)?.[1],
  );
  return document !== '' && usual.has(document) ? `# As by default: ${source} ${kind} ${name}\n` : document;
}

test.each(await ciValues())('%s renders as it did', async (ci) => {
  const text = masked(await rendered({ ci }));
  await expect(ci === DEFAULT ? text : documentsOf(text).map(differing).join('---\n')).toMatchFileSnapshot(
    `golden/${ci.replace('-values.yaml', '.golden')}`,
  );
});

test('values-ha.yaml is the one that is tested', async () => {
  expect(await readFile(`${CHART}/ci/ha-values.yaml`, 'utf8')).toBe(
    await readFile(`${CHART}/values-ha.yaml`, 'utf8'),
  );
});
