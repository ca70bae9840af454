import { runInThisContext } from 'node:vm';
import { decode, encode } from '@jridgewell/sourcemap-codec';
import { expect, it } from 'vitest';
import { inAscii } from '../../scripts/build/ascii.ts';

const CODE = [
  'const one = "…";',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a program.
  'const two = `–${one}😀` + "é", three = /[…\\uFEFF]/.test("a…b");',
  'const café = "plain";',
  '[one, two, three, café]',
].join('\n');

/** One segment for each column: where it came from is where it is. */
const IDENTITY = CODE.split('\n').map((line, index) =>
  Array.from(line, (_, column): [number, number, number, number] => [column, 0, index, column]),
);

it('says the same without a character outside ASCII', () => {
  const { code } = inAscii({ code: CODE, map: { mappings: encode(IDENTITY) } });

  expect(code).toMatch(/^[\0-\x7f]*$/);
  expect(runInThisContext(`{${code}}`)).toEqual(['…', '–…😀é', true, 'plain']);
});

it('has a source map that leads to where things were', () => {
  const { code, map } = inAscii({ code: CODE, map: { mappings: encode(IDENTITY) } });
  const [before, after] = [CODE.split('\n'), code.split('\n')];

  for (const [line, segments] of decode(map.mappings).entries()) {
    for (const [column, , , original = -1] of segments) {
      const [was, is] = [before[line]?.charCodeAt(original) ?? 0, after[line]?.[column]];
      expect(is, `line ${line}, column ${column}`).toBe(was < 0x80 ? String.fromCharCode(was) : '\\');
    }
  }
});

it('leaves a program in ASCII as it is', () => {
  const program = { code: 'a;\nb', map: { mappings: encode([[[0, 0, 0, 0]], []]), version: 3 } };
  expect(inAscii(program)).toEqual(program);
});

it('refuses what it cannot escape', () => {
  const map = { mappings: '' };
  expect(() => inAscii({ code: '/[\\…]/', map })).toThrow('backslash');
  expect(inAscii({ code: '"\\\\…"', map }).code).toBe('"\\\\\\u2026"');
});
