import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { PAGES, ROOT } from './blocks.ts';

interface Link {
  readonly page: string;
  readonly target: string;
}

const withoutBlocks = (text: string): string =>
  text.replace(/^ *```[\s\S]*?^ *```/gm, '').replace(/`[^`\n]*`/g, '');

function linksOf(page: string): Link[] {
  const text = withoutBlocks(readFileSync(join(ROOT, page), 'utf8'));
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => ({ page, target: target as string }));
}

/** As GitHub makes them of headings. */
function anchorsOf(file: string): Set<string> {
  const headings = readFileSync(file, 'utf8')
    .replace(/^ *```[\s\S]*?^ *```/gm, '')
    .matchAll(/^#{1,6} (.+)$/gm);
  const seen = new Map<string, number>();
  return new Set(
    [...headings].map(([, heading = '']) => {
      const anchor = heading
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replace(/\s/g, '-');
      const count = seen.get(anchor) ?? 0;
      seen.set(anchor, count + 1);
      return count === 0 ? anchor : `${anchor}-${count}`;
    }),
  );
}

const LINKS = PAGES.flatMap(linksOf).filter(({ target }) => !/^(https?:|mailto:)/.test(target));

it('there are links', () => {
  expect(LINKS.length).toBeGreaterThan(200);
});

it('every link leads to a page that there is, and to a heading in it', () => {
  const broken = LINKS.filter(({ page, target }) => {
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path);
    if (!existsSync(file)) return true;
    return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).has(anchor);
  });
  expect(broken).toEqual([]);
});

it('every file that the life of a request names is there', () => {
  const page = readFileSync(join(ROOT, 'docs/explanation/life-of-a-request.md'), 'utf8');
  const named = [...page.matchAll(/`([\w/-]+\/(?:[\w-]+\.ts)?)`/g)].map(([, path = '']) => path);
  expect(named.length).toBeGreaterThan(20);
  expect(
    named.filter((path) => !existsSync(join(ROOT, path.startsWith('src/') ? '' : 'src/proxy', path))),
  ).toEqual([]);
});
