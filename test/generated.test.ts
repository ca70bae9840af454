import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { generate } from '../scripts/generate.ts';

const generated = await generate();

it.each(Object.keys(generated))('%s is what `npm run generate` writes', (path) => {
  expect(readFileSync(join(import.meta.dirname, '..', path), 'utf8')).toBe(generated[path]);
});
