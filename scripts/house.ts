/**
 * Counts what makes a file easy or hard to find in `src/`, each figure beside the one that is wanted.
 *
 *     npm run house
 *     npm run house -- --list     names the exports, the files with one importer and the private words
 */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parseArgs } from 'node:util';
import { print, printTable } from './simulation/table.ts';

const SRC = join(import.meta.dirname, '../src');

/** Words that a reader has to be told, where the field has one of its own. */
const PRIVATE_WORDS =
  /\b(?:MOST|LONGEST|LARGEST|SHORTEST|LEAST)_\w+|\b\w*(?:[eE]ntrance|[fF]ollower|Heir|Strangers|NOBODY|[wW]ished|[gG]oneSeries)\b|\b(?:door|heir|fate|fateOf)\b/g;

interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly exports: readonly string[];
  /** What it imports of other files of `src/`: their paths, and the names. */
  readonly imports: readonly { readonly path: string; readonly names: readonly string[] }[];
}

const { values } = parseArgs({ options: { list: { type: 'boolean', default: false } } });

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
  .map(readSource);
const loose = files.filter(({ path }) => !path.includes('/'));
const entries = new Set(files.map(({ path }) => path.split('/')[0]));
const lines = files.reduce((sum, { text }) => sum + text.split('\n').length - 1, 0);
const exported = files.flatMap(({ path, exports }) => exports.map((name) => ({ path, name })));
const imported = new Map<string, Set<string>>();
const importers = new Map<string, Set<string>>();
for (const file of files) {
  for (const { path, names } of file.imports) {
    addTo(importers, path, file.path);
    for (const name of names) addTo(imported, path, name);
  }
}
const unused = exported.filter(
  ({ path, name }) => !imported.get(path)?.has(name) && !imported.get(path)?.has('*'),
);
const single = files.filter(({ path }) => importers.get(path)?.size === 1);
const words = files.flatMap(({ path, text }) =>
  [...text.matchAll(PRIVATE_WORDS)].map(([word]) => ({ path, name: word })),
);
const small = files.filter(({ text }) => text.split('\n').length < 60);
const large = files.filter(({ text }) => text.split('\n').length > 450);

printTable(
  ['count', 'what', 'wanted'],
  [
    [String(entries.size), 'entries of src/', 'at most 18'],
    [String(loose.length), 'of them loose files', 'at most 2'],
    [String(files.length), 'files', 'at most 430'],
    [String(small.length), 'files of under 60 lines', ''],
    [String(large.length), 'files of over 450 lines', '0'],
    [String(exported.length), 'exported names', ''],
    [(lines / exported.length).toFixed(1), 'lines an export', 'at least 40'],
    [String(unused.length), 'exports that no file of src/ imports', 'at most 60'],
    [String(single.length), 'files with one importer', 'at most 120'],
    [String(words.length), 'private words', '0'],
  ],
);
if (values.list) {
  list('Exports that no file of src/ imports', unused);
  list('Files with one importer', single);
  list('Private words', words);
}

function readSource(path: string): SourceFile {
  const text = readFileSync(join(SRC, path), 'utf8');
  const exports = text.matchAll(
    /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm,
  );
  const imports = text.matchAll(/^(?:import|export)\s(?:type\s)?([^;'"]*?)\s*from\s'(\.[^']+)'/gm);
  const loaded = text.matchAll(/import\('(\.[^']+)'\)/g);
  return {
    path,
    text,
    exports: [...exports].map(([, name]) => name as string),
    imports: [
      ...[...imports].map(([, names, from]) => ({
        path: pathOf(path, from as string),
        names: namesIn(names as string),
      })),
      ...[...loaded].map(([, from]) => ({ path: pathOf(path, from as string), names: ['*'] })),
    ],
  };
}

function pathOf(importer: string, specifier: string): string {
  return normalize(join(dirname(importer), specifier));
}

/** `{ a, type B as C }` → a, B; everything for `* as all`. */
function namesIn(clause: string): string[] {
  if (clause.includes('*')) return ['*'];
  const listed = /\{([^}]*)\}/.exec(clause)?.[1] ?? '';
  return listed
    .split(',')
    .map((name) =>
      name
        .trim()
        .replace(/^type /, '')
        .replace(/ as .*/, ''),
    )
    .filter((name) => name !== '');
}

function addTo(map: Map<string, Set<string>>, key: string, value: string): void {
  const set = map.get(key) ?? new Set();
  map.set(key, set.add(value));
}

function list(title: string, found: readonly { readonly path: string; readonly name?: string }[]): void {
  print(`${title}:`);
  for (const { path, name } of found) print(`  src/${path}${name === undefined ? '' : ` ${name}`}`);
  print();
}
