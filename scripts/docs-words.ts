/**
 * Counts the words of each page, as `wc -w` does: the bars of a table count, too.
 *
 *     npm run docs:words                    all pages
 *     npm run docs:words -- docs/decisions  those of a folder, or one page
 *
 * Left out: mistakes in configurations, which show messages, and the results of benchmarks.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { print, printTable } from './simulation/table.ts';

const ROOT = join(import.meta.dirname, '..');
const LEFT_OUT = ['test/config/mistakes/', 'bench/results/'];

const under = process.argv.slice(2);
const patterns =
  under.length === 0 ? ['*.md'] : under.map((path) => (path.endsWith('.md') ? path : join(path, '*.md')));
const tracked = execFileSync('git', ['ls-files', '-z', '--', ...patterns], { cwd: ROOT, encoding: 'utf8' });

const pages = tracked
  .split('\0')
  .filter((path) => path !== '' && !LEFT_OUT.some((folder) => path.startsWith(folder)))
  .map((path) => ({ path, words: wordsIn(readFileSync(join(ROOT, path), 'utf8')) }))
  .sort((a, b) => b.words - a.words);
const sum = pages.reduce((words, page) => words + page.words, 0);

printTable(
  ['words', 'page'],
  pages.map(({ path, words }) => [String(words), path]),
);
print(`${sum} words in ${pages.length} pages`);

function wordsIn(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length;
}
