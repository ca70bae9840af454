import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { parseConfig } from '../../src/config/file.ts';
import { resolveConfig } from '../../src/config/resolve-config.ts';
import { describeProblem, type Problem } from '../../src/platform/problems.ts';
import { type Block, blocksOfKind } from './blocks.ts';

interface File {
  credentials?: { name?: string }[];
  routes?: { name?: string; credential?: string }[];
  [key: string]: unknown;
}

const PROVIDER = 'https://sso.example.com/token';

/** What is wrong with it, as the program says it. Files that it names are those of a pod. */
async function problemsOf(text: string, file: string): Promise<string[]> {
  const problems: Problem[] = [];
  const reading = await parseConfig(text, file, problems);
  resolveConfig(reading, {}, problems);
  return problems.map(describeProblem);
}

/** With what a block leaves out that has been said elsewhere: the credentials that it names, and a route for those it has. */
function completed(block: File): File {
  const named = [...JSON.stringify(block).matchAll(/"credential":"([^"]+)"/g)].map(
    ([, name]) => name as string,
  );
  const given = block.credentials ?? [];
  const known = given.map(({ name }) => name);
  const needed = new Set([...named, ...(known.length === 0 && named.length === 0 ? ['default'] : [])]);
  const usesDefault = /"(?:upstream|host)":/.test(JSON.stringify(block)) && !known.includes('default');
  if (usesDefault) needed.add('default');
  const missing = [...needed].filter((name) => !known.includes(name));
  const credentials = [...given, ...missing.map((name) => ({ name, tokenUrl: PROVIDER }))];
  const has = block.routes ?? block['forwardProxy'] ?? block['capture'] ?? block['redirect'];
  const routes = credentials.map(({ name = '' }) => ({
    name,
    match: { pathPrefix: `/${name}` },
    upstream: 'https://api.example.com',
    credential: name,
  }));
  return { ...block, credentials, ...(has === undefined ? { routes } : {}) };
}

async function expectValid({ file, text }: Block, whole: (value: never) => File): Promise<void> {
  const complete = completed(whole(parse(text) as never));
  expect(await problemsOf(stringify(complete), file)).toEqual([]);
}

describe('a configuration', () => {
  it.each(blocksOfKind('configuration'))('%s', async (_, block) => {
    await expectValid(block, (value: File) => value);
  });

  it('is refused where it is wrong', async () => {
    const wrong = { file: 'wrong.md', text: 'routes: [{ name: api, upstraem: https://api.example.com }]' };
    const { text } = { text: stringify(completed(parse(wrong.text) as File)) };
    expect(await problemsOf(text, wrong.file)).toContainEqual(expect.stringContaining('upstraem'));
  });
});

describe('settings of one credential', () => {
  it.each(blocksOfKind('credential'))('%s', async (_, block) => {
    await expectValid(block, (settings: object) => ({
      credentials: [{ name: 'default', tokenUrl: PROVIDER, ...settings }],
    }));
  });
});

describe('routes', () => {
  it.each(blocksOfKind('routes'))('%s', async (_, block) => {
    await expectValid(block, (routes: File['routes']) => ({ routes: routes ?? [] }));
  });
});
