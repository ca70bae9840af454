import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './blocks.ts';

const DIRECTORY = join(ROOT, 'docs/decisions');
const FILES = readdirSync(DIRECTORY).filter((file) => file !== 'README.md');

it('each decision has a number of its own, which is in its title, too', () => {
  const numbers = FILES.map((file) => Number.parseInt(file, 10));
  expect(numbers).toEqual([...new Set(numbers)]);
  const titles = FILES.map((file) => readFileSync(join(DIRECTORY, file), 'utf8').split('.')[0]);
  expect(titles).toEqual(numbers.map((number) => `# ${number}`));
});
