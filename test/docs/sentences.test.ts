/** Finds the sentences that nobody reads twice. Split one in two, or make a list or a table of it. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PAGES, ROOT } from './blocks.ts';

/** A link is its text, and a piece of code one word. */
function plain(markdown: string): string {
  return markdown
    .replace(/^ *```[\s\S]*?^ *```/gm, '\n\n')
    .replace(/\n\n(?: {4}.*\n)+/g, '\n\n')
    .replace(/<!--[\s\S]*?-->|<\/?[a-z][^>\n]*>|&\w+;/g, '')
    .replace(/(`+)(?:(?!\n\n)[\s\S])*?\1/g, 'C')
    .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*+/g, (stars, at, text) => (text[at + 1] === ' ' ? stars : ''));
}

const wordsIn = (text: string): number =>
  text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

/** What is too long, after how it is. */
function findingsIn(page: string): string[] {
  const lines = plain(page).split('\n');
  const cells = lines.filter((line) => /^ *\|/.test(line)).flatMap((line) => line.split(/(?<!\\)\|/));
  const blocks = lines
    .map((line) => (/^ *(\||#|$)/.test(line) ? '\n' : line.replace(/^[ >]*([-*]|\d+\.) /, '\n')))
    .join('\n')
    .split(/\n{2,}/);
  const sentences = blocks.flatMap((block) => block.split(/(?<=[.!?]["”)]*)\s+(?=["“(]*[\p{Lu}\d])/u));
  const tooLong = {
    'a sentence of over 35 words': sentences.filter((sentence) => wordsIn(sentence) > 35),
    'a paragraph with over 2 semicolons': blocks.filter((block) => block.split(';').length > 3),
    'a cell of over 40 words': cells.filter((cell) => wordsIn(cell) > 40),
    'a table without a head': plain(page).match(/(?<=\n\n)\|.*\n(?!\|[-:|]+\n)/g) ?? [],
  };
  return Object.entries(tooLong).flatMap(([kind, texts]) =>
    texts.map((text) => `${kind}: ${text.trim().replace(/\s+/g, ' ')}`),
  );
}

const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

it.each(PAGES)('the sentences of %s are short', (page) => {
  expect(findingsIn(textOf(page))).toEqual([]);
});

it.each(PAGES.filter((page) => /^docs\/decisions\/\d/.test(page)))(
  '%s has 400 words at most, the tables of 28 apart',
  (page) => {
    const text = plain(textOf(page));
    expect(wordsIn(page.includes('/0028-') ? text.replace(/^\|.*$/gm, '') : text)).toBeLessThanOrEqual(400);
  },
);

it('each kind is found, and what is no sentence is not', () => {
  const words = (count: number): string => 'word '.repeat(count).trim();
  const kindsIn = (page: string): (string | undefined)[] =>
    findingsIn(page).map((text) => text.split(':')[0]);
  expect(kindsIn(`A ${words(35)}.`)).toEqual(['a sentence of over 35 words']);
  expect(kindsIn('One; two;\nthree; four')).toEqual(['a paragraph with over 2 semicolons']);
  expect(kindsIn(`| One; two; three; four | ${words(41)} |`)).toEqual(['a cell of over 40 words']);
  expect(kindsIn('| | |\n|---|---|\n| one | two |\n\n| three | four |\n')).toEqual([
    'a table without a head',
  ]);
  const short = words(20);
  expect(kindsIn(`- A ${short}.\n- A ${short}. [A](x) \`${words(40)}\`: ${short}.`)).toEqual([]);
  expect(kindsIn(`\n\n    ${words(40)}\n\n\`\`\`\n${words(50)};;;\n\`\`\``)).toEqual([]);
});
