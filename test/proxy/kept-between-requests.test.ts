import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/** A variable of a module, or something that is made to keep values. */
const KEEPS =
  /^(?:export )?let |\bnew (?:MadeOf|WeakMap|WeakSet|BlockPool)\b|\ballocUnsafeSlow\(|^export class Known/m;

/** What is made to keep values anywhere; `platform/limits` itself makes it for others. */
const KEEPS_ELSEWHERE = /\bnew (?:LruMap|ExpiringMap|TokenBuckets|WeakMap|\w+Pool)\b/;
const NOT_ELSEWHERE = [
  'src/platform/limits/',
  // Loggers live as long as the program.
  'src/platform/log/logger.ts',
];

const record = readFileSync(join(ROOT, 'docs/decisions/0028-what-is-kept-between-requests.md'), 'utf8');
const tables = new Map(
  record.split('\n## ').map((section) => [
    section.split('\n')[0] as string,
    section
      .split('\n')
      .filter((line) => line.startsWith('| ') && line.includes('`'))
      .map((line) => line.split(' | ')),
  ]),
);
const inDataPath = tables.get('In the data path') ?? [];
const others = [...(tables.get('Connections and sessions') ?? []), ...(tables.get('Elsewhere') ?? [])];

function namesIn(cells: readonly (string | undefined)[], under: string): string[] {
  return cells
    .flatMap((cell) => [...(cell ?? '').matchAll(/`([^`]+\.ts)`/g)])
    .map(([, name]) =>
      /^(?:src|test)\//.test(name as string) ? (name as string) : join(under, name as string),
    );
}

function sourcesIn(rooms: readonly string[], keeps: RegExp): readonly string[] {
  return rooms
    .flatMap((room) =>
      readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' }).map((file) => join(room, file)),
    )
    .filter((file) => file.endsWith('.ts') && keeps.test(readFileSync(join(ROOT, file), 'utf8')));
}

const sourcesNamed = (rows: readonly (readonly string[])[]): readonly string[] =>
  namesIn(
    rows.map((cells) => cells[1]),
    'src/proxy',
  );

test('decision 28 names each file of the data path that keeps something between requests, and no other', () => {
  const keeping = sourcesIn(['src/proxy', 'src/gateway'], KEEPS);
  expect(sourcesNamed(inDataPath).toSorted()).toEqual(keeping.toSorted());
});

test('decision 28 names each other file that makes a bounded map or a pool, and only existing files', () => {
  const named = sourcesNamed([...inDataPath, ...others]);
  const keeping = sourcesIn(['src'], KEEPS_ELSEWHERE).filter(
    (file) => !NOT_ELSEWHERE.some((start) => file.startsWith(start)),
  );
  expect(keeping.filter((file) => !named.includes(file))).toEqual([]);
  expect(named.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

test.each([...inDataPath, ...others])(
  'the table of decision 28 is complete for %s, and names an existing test',
  (...cells) => {
    expect(cells).toHaveLength(5);
    const tests = namesIn([cells.at(-1)], 'test/proxy');
    expect(tests).not.toEqual([]);
    expect(tests.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  },
);
