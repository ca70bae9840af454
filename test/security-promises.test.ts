import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

const text = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8');
const [, section = ''] = text.split('## The promises, and the tests that hold them\n');

function testsIn(markdown: string): string[] {
  return [...markdown.matchAll(/`(test\/[^`]+)`/g)].map(([, path]) => path as string);
}

const promises = section
  .split('\n')
  .filter((line) => line.startsWith('- '))
  .map((line) => ({ promise: line.split(' `test/')[0] as string, tests: testsIn(line) }));

it('SECURITY.md makes promises', () => {
  expect(promises.length).toBeGreaterThan(15);
});

it.each(promises)('$promise is held by a test', ({ tests }) => {
  expect(tests).not.toEqual([]);
});

it('each test that SECURITY.md names is there', () => {
  const missing = testsIn(text).filter((path) => !path.endsWith('.test.ts') || !existsSync(join(ROOT, path)));
  expect(missing).toEqual([]);
});
