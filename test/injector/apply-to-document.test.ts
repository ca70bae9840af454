import { describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { applyToDocument } from '../../src/injector/manifests/inject-manifests.ts';
import type { JsonPatch } from '../../src/injector/pod/json-patch.ts';

function applied(text: string, path: readonly (string | number)[], ...operations: [string, unknown][]) {
  const document = parseDocument(text, { merge: true });
  const patch: JsonPatch = operations.map(([at, value]) => ({ op: 'add', path: at, value }));
  const problem = applyToDocument(document, path, patch);
  return { problem, text: document.toString() };
}

describe('a patch', () => {
  it.each<[string, string, [string, unknown], string]>([
    ['a member of a map', 'a: {b: 1}\n', ['/a/c', 2], 'a: { b: 1, c: 2 }\n'],
    ['a member in place of another', 'a: {b: 1}\n', ['/a/b', 2], 'a: { b: 2 }\n'],
    ['the end of a list', 'a: [1, 2]\n', ['/a/-', 3], 'a: [ 1, 2, 3 ]\n'],
    ['the beginning of a list', 'a: [1, 2]\n', ['/a/0', 3], 'a: [ 3, 1, 2 ]\n'],
    ['the middle of a list', 'a: [1, 2]\n', ['/a/1', 3], 'a: [ 1, 3, 2 ]\n'],
    ['a map that is not there', 'a: 1\n', ['/b', { c: 1 }], 'a: 1\nb:\n  c: 1\n'],
    ['an escaped name', 'a: {}\n', ['/a/x~1y~0z', 1], 'a: { x/y~z: 1 }\n'],
  ])('adds to %s', (_, before, operation, after) => {
    expect(applied(before, [], operation)).toEqual({ problem: undefined, text: after });
  });

  it('is applied below a path, through lists too, and leaves comments and order', () => {
    const text = '# head\nitems:\n  - x: 1 # one\n  - y: 2 # two\n';
    expect(applied(text, ['items', 1], ['/z', 3])).toEqual({
      problem: undefined,
      text: '# head\nitems:\n  - x: 1 # one\n  - y: 2 # two\n    z: 3\n',
    });
  });

  it('writes out a value at each place, without YAML aliases', () => {
    const value = { name: 'shared' };
    const { text } = applied('a: []\n', [], ['/a/-', [value, value]], ['/a/-', value]);
    expect(text).not.toMatch(/[&*]/);
    expect(text.match(/shared/g)).toHaveLength(3);
  });
});

describe('a value that an alias shares', () => {
  it.each<[string, string, readonly (string | number)[], string, string]>([
    ['an anchor', 'a: &x {b: 1}\nc: *x\n', [], '/a/d', 'a'],
    ['an alias', 'a: &x {b: 1}\nc: *x\n', [], '/c/d', 'c'],
    ['an anchor further up', 'a: &x {b: {}}\nc: *x\n', [], '/a/b/d', 'a'],
    ['an anchor further down', 'a: {b: &x {}}\nc: *x\n', [], '/a/b/d', 'a.b'],
    ['a merge', 'a: {<<: {b: {}}}\n', [], '/a/b/d', 'a.b'],
    ['an anchor on the path', 'i: [&x {b: {}}, *x]\n', ['i', 0], '/b/d', 'i.0'],
  ])('%s is named and nothing is changed', (_, text, path, at, name) => {
    const untouched = parseDocument(text, { merge: true }).toString();
    const { problem, text: after } = applied(text, path, ['/e', 1], [at, 1]);
    expect(problem).toBe(`${name} is shared by an anchor and an alias, or merged: write it out`);
    expect(after).toBe(untouched);
  });

  it.each<[string, string, string]>([
    ['an anchor beside the way', 'a: {b: 1}\nc: &x {}\nd: *x\n', '/a/e'],
    ['what is put in place of an alias', 'a: &x 1\nb: *x\n', '/b'],
    ['a merge beside the way', 'a: {<<: {b: {}}, c: {}}\n', '/a/c/d'],
  ])('is no matter where the patch does not reach it: %s', (_, text, at) => {
    expect(applied(text, [], [at, 1]).problem).toBeUndefined();
  });
});
