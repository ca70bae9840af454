import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './blocks.ts';

const DIRECTORY = join(ROOT, 'docs/decisions');
const FILES = readdirSync(DIRECTORY).filter((file) => file !== 'README.md');

it('decisions are numbered one after the other, each with its number in the title', () => {
  const numbers = FILES.map((file) => Number.parseInt(file, 10)).sort((a, b) => a - b);
  expect(numbers).toEqual(FILES.map((_, index) => index + 1));
  const titles = FILES.map((file) => readFileSync(join(DIRECTORY, file), 'utf8').split('.')[0]);
  expect(titles).toEqual(FILES.map((file) => `# ${Number.parseInt(file, 10)}`));
});
