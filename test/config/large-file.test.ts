/** A file of a thousand routes is read bit by bit, and what its routes hide from each other is found in one look at each. */

import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import type { ConfigurationError } from '../../src/platform/problems.ts';
import { turnsDuring } from '../support/turns.ts';

interface Match {
  readonly host?: string;
  readonly pathPrefix: string;
}

const fileOf = (matches: readonly Match[]): string =>
  [
    'credentials: [{ name: default, tokenUrl: "https://sso.test/token", dir: /secret }]',
    'routes:',
    ...matches.flatMap((match, index) => [
      `  - name: route-${index}`,
      `    match: ${JSON.stringify(match)}`,
      '    upstream: https://api.test/',
      '    credential: default',
    ]),
  ].join('\n');

const load = (text: string) => loadConfig({ config: { key: '--config', text: '/file.yaml' } }, [], text);

it('lets the loop turn while it is taken apart', async () => {
  const text = fileOf(Array.from({ length: 1000 }, (_, index) => ({ pathPrefix: `/route-${index}/` })));
  const turns = await turnsDuring(async () => expect((await load(text)).routes).toHaveLength(1000));
  // Some thirty words each of two thousand at a time.
  expect(turns).toBeGreaterThan(12);
});

it('finds each route that another before it hides, as comparing every two of them does', async () => {
  const hosts = [undefined, 'a.test', 'b.test'];
  const paths = ['/', '/a', '/a/', '/ab', '/a/b', '/a/b/', '/b/a', '/a/b/c'];
  const all = hosts.flatMap((host) =>
    paths.map((pathPrefix): Match => (host === undefined ? { pathPrefix } : { host, pathPrefix })),
  );
  // Each of two orders, and one that mixes them: most specific first hides little, the other nearly all.
  const orders = [
    all,
    all.toReversed(),
    all.toSorted((one, other) => other.pathPrefix.length - one.pathPrefix.length),
  ];
  for (const matches of orders) {
    const expected = matches.flatMap((later, index) => {
      const shadow = matches.slice(0, index).findIndex((earlier) => covers(earlier, later));
      return shadow === -1 ? [] : [[`routes[${index}].match`, `routes[${shadow}] (route-${shadow})`]];
    });
    const problems = await load(fileOf(matches)).then(
      () => [],
      (error: ConfigurationError) => error.problems,
    );
    const found = problems.map(({ key, expected: text }) => [key, /that (.*) does not take/.exec(text)?.[1]]);
    expect(expected.length).toBeGreaterThan(0);
    expect(found).toEqual(expected);
  }
});

function covers(earlier: Match, later: Match): boolean {
  if (earlier.host !== undefined && earlier.host !== later.host) return false;
  const [prefix, path] = [earlier, later].map(({ pathPrefix }) => pathPrefix.replace(/\/$/, '')) as [
    string,
    string,
  ];
  return path === prefix || path.startsWith(`${prefix}/`);
}
