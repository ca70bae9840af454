import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/** A variable of a module, or something that is made to keep values. */
const KEEPS =
  /^(?:export )?let |\bnew (?:MadeOf|WeakMap|WeakSet|BlockPool)\b|\ballocUnsafeSlow\(|^export class Known/m;

const record = readFileSync(join(ROOT, 'docs/decisions/0028-what-is-kept-between-requests.md'), 'utf8');
const rows = record
  .split('\n')
  .filter((line) => line.startsWith('| ') && line.includes('`'))
  .map((line) => line.split(' | '));

function namesIn(cells: readonly (string | undefined)[], under: string): string[] {
  return cells
    .flatMap((cell) => [...(cell ?? '').matchAll(/`([^`]+\.ts)`/g)])
    .map(([, name]) => (name?.startsWith('src/') ? (name as string) : join(under, name as string)));
}

test('the record of what is kept between requests names each file of the data path that keeps something, and no other', () => {
  const keeping = ['src/proxy', 'src/gateway']
    .flatMap((room) =>
      readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' }).map((file) => join(room, file)),
    )
    .filter((file) => file.endsWith('.ts') && KEEPS.test(readFileSync(join(ROOT, file), 'utf8')));
  const named = namesIn(
    rows.map((cells) => cells[1]),
    'src/proxy',
  );
  expect(named.toSorted()).toEqual(keeping.toSorted());
});

test('the record of what is kept between requests names a test of each that is there', () => {
  for (const cells of rows) {
    const tests = namesIn([cells.at(-1)], 'test/proxy');
    expect(tests, cells[0]).not.toEqual([]);
    expect(
      tests.filter((file) => !existsSync(join(ROOT, file))),
      cells[0],
    ).toEqual([]);
  }
});
