import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '../../src/config/file.ts';
import { loadConfig } from '../../src/config/load.ts';
import { parseShortJson } from '../../src/config/yaml.ts';
import type { Problem } from '../../src/platform/problems.ts';

const FILE = {
  credentials: [{ name: 'crm', authUrl: 'https://sso.example.com', dir: '/var/run/secrets/crm' }],
  routes: [{ name: 'crm', upstream: 'https://crm.example.com', credential: 'crm' }],
};

it('an object in JSON without spaces is read', () => {
  expect(parseShortJson(JSON.stringify(FILE))).toEqual(FILE);
});

it.each([
  ['a key that stands twice', '{"listen":"127.0.0.1:1","listen":"127.0.0.1:2"}'],
  ['spaces', JSON.stringify(FILE, null, 2)],
  ['a line end', `${JSON.stringify(FILE)}\n`],
  ['a number in another form', '{"a":1.0}'],
  ['a number that would be another', '{"a":9007199254740993}'],
  ['an escape that is not needed', String.raw`{"a":"\u0061"}`],
  ['a list', '[]'],
  ['a string', '"a"'],
  ['nothing', 'null'],
  ['YAML', 'listen: 127.0.0.1:15080'],
  ['an octet that is not UTF-8', '{"a":"\uFFFD"}'],
  ['a control character', '{"a":"\x7F"}'],
  ['more brackets than the stack has room for', '{"a":'.repeat(200_000)],
])('%s is left to the parser of YAML', (_, text) => {
  expect(parseShortJson(text)).toBeUndefined();
});

it('it says what it says in YAML', () => {
  const values = fc.dictionary(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 3 }));
  fc.assert(
    fc.property(values, (value) => {
      const text = JSON.stringify(value);
      const read = parseShortJson(text);
      if (read !== undefined) expect(JSON.stringify(parse(text))).toEqual(JSON.stringify(read));
    }),
  );
});

it('a setting that is wrong is told as in any other file', async () => {
  const short = JSON.stringify({ ...FILE, lisen: '127.0.0.1:15080' });
  const found: Problem[][] = [[], []];
  const readings = [short, `${short}\n`].map((text, at) =>
    parseConfig(text, 'a.json', found[at] as Problem[]),
  );
  await Promise.all(readings);
  expect(found[0]).toHaveLength(1);
  expect(found[0]).toEqual(found[1]);
});

it('what is wrong between settings has its place', async () => {
  const routes = [{ ...FILE.routes[0], credential: 'other' }];
  const text = JSON.stringify({ ...FILE, routes });
  const given = { config: { key: '--config', text: '/a.json' } };
  const error = await loadConfig(given as never, [], text).catch((reason: unknown) => reason);
  expect(error).toMatchObject({
    problems: [{ key: 'routes[0].credential', place: { line: 1, column: text.indexOf('"other"') + 1 } }],
  });
});
