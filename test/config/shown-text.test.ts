import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/file.ts';
import type { Problem } from '../../src/config/problems.ts';
import { reportProblems } from '../../src/config/report.ts';
import { quoted, shownLine, shownValue } from '../../src/config/shown-text.ts';

const KNOWN = ['name', 'upstream', 'dir', 'hosts'];
const shown = (line: string, outer?: string) => shownLine(line, (key) => KNOWN.includes(key), outer).text;

describe('a value', () => {
  it.each([
    ['ftp://x', 'ftp://x'],
    ['https://shop:hunter2@sso.example.com/a', 'https://…@sso.example.com/a'],
    ['https://shop:hun/ter@2@sso.example.com', 'https://…@sso.example.com'],
    ['https://a.example.com/x?token=hunter2', 'https://a.example.com/x?…'],
    ['https://a.example.com/x#hunter2', 'https://a.example.com/x?…'],
    ['/var/run/secrets/token-sidecar', '/var/run/secrets/token-sidecar'],
    ['token-sidecar.namespace.svc.cluster.local', 'token-sidecar.namespace.svc.cluster.local'],
  ])('%s is shown as %s', (value, expected) => {
    expect(shownValue(value)).toBe(expected);
  });

  it.each(['a9VqXp3TzLw8RbNcYd2KfGhJ', '3f2504e0-4f89-41d3-9a0c-0305e82c3301', 'x '.repeat(200)])(
    '%s is described',
    (value) => {
      expect(quoted(value)).toBe(`a text of ${value.length} characters`);
    },
  );
});

describe('a line', () => {
  it.each([
    ['  - name: api', '  - name: api'],
    ['  clientSecret: hunter2', '  clientSecret: …'],
    ['clientSecret: "hun: ter, 2" # hunter3', 'clientSecret: … # …'],
    ['{ name: a, password: hunter2, upstream: https://x }', '{ name: a, password: …, upstream: https://x }'],
    ['{ name: a, hunter2 }', '{ name: a, … }'],
    ['{ "name": "a", "secret": "hunter2" }', '{ "name": "a", "secret": … }'],
    ['hosts: [a, b]', 'hosts: [a, b]'],
    ['hunter2', '…'],
    ['- hunter2', '- …'],
    ['CLIENT_SECRET=hunter2', '…'],
    ["'hunter2", '…'],
  ])('%s is shown as %s', (line, expected) => {
    expect(shown(line)).toBe(expected);
  });

  it('stands under the key above it', () => {
    expect(shown('- status.example.com', 'hosts')).toBe('- status.example.com');
    expect(shown('- hunter2', 'password')).toBe('- …');
  });

  it('never shows what stands behind a key that there is not, whatever is around it', () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9!$%^&*()_+=.;<>/@~-]{6,30}$/).map((text) => `hunter${text}`);
    const before = fc.constantFrom('', '- ', '  ', '{ name: a, ', '{ "name": "a", ', '- { dir: /x, ', '\t');
    const after = fc.constantFrom('', ' }', ', upstream: https://x }', ' # was another');
    const quote = fc.constantFrom('', '"', "'");
    fc.assert(
      fc.property(before, secret, quote, after, (start, word, mark, end) => {
        const line = `${start}clientSecret: ${mark}${word}${mark}${end}`;
        expect(shown(line)).not.toContain('hunter');
      }),
    );
  });

  it('is left out where it is very long, however it is made', () => {
    for (const line of [`name: ${' '.repeat(1_000_000)}x`, `{ name: ${'a, '.repeat(500_000)}`]) {
      expect(shown(line)).toBe('…');
    }
    const started = performance.now();
    shown(`name: x${' '.repeat(9_900)}y`);
    expect(performance.now() - started).toBeLessThan(5000);
  });

  it('knows where a part of it has got to', () => {
    const { text, place } = shownLine('{ password: hunter2, name: API }', (key) => KNOWN.includes(key));
    expect(text).toBe('{ password: …, name: API }');
    expect(text.slice(place('{ password: hunter2, name: '.length))).toBe('API }');
    expect(text[place('{ password: hun'.length)]).toBe('…');
  });
});

it.each([
  ['a colon forgotten', 'credentials:\n  - name: a\n    clientSecret hunter2secret\n'],
  ['a key twice', 'listen: 127.0.0.1:1\nlisten: hunter2secret\n'],
  ['text in place of a mapping', 'credentials:\n  - name: a\n    parameters: hunter2secret\n'],
  ['text in place of a list of mappings', 'routes: hunter2secret\n'],
])('what is wrong is described, not quoted: %s', async (_, text) => {
  const problems: Problem[] = [];
  await parseConfig(text, 'token-sidecar.yaml', problems);

  expect(problems).not.toEqual([]);
  expect(reportProblems(problems, { colour: false })).not.toContain('hunter2');
  expect(JSON.stringify(problems)).not.toContain('hunter2');
});
