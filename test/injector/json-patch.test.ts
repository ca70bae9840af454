import { describe, expect, it } from 'vitest';
import { addMembers, append, pointer, segmentsOf } from '../../src/injector/pod/json-patch.ts';

describe('a pointer', () => {
  it.each([
    [['spec', 'containers', 0, 'env'], '/spec/containers/0/env'],
    [['a/b', 'c~d', '~1', '/~0/'], '/a~1b/c~0d/~01/~1~00~1'],
    [[''], '/'],
  ])('of %j is %s, and can be read again', (segments, text) => {
    expect(pointer(...segments)).toBe(text);
    expect(segmentsOf(text)).toEqual(segments.map(String));
  });
});

describe.each([
  [
    'members',
    (existing?: object | null) => addMembers(existing, ['a'], { b: 1, c: 2 }),
    {},
    ['/a/b', '/a/c'],
  ],
  ['items', (existing?: null | unknown[]) => append(existing, ['a'], [1, 2]), [], ['/a/-', '/a/-']],
] as const)('%s are added', (_, addedTo, empty, paths) => {
  it.each([undefined, null])('all at once to what is %s', (missing) => {
    expect(addedTo(missing)).toMatchObject([{ op: 'add', path: '/a' }]);
  });

  it('one by one to what is there', () => {
    expect(addedTo(empty as never)).toMatchObject(
      paths.map((path, at) => ({ op: 'add', path, value: at + 1 })),
    );
  });
});

it('no item is no operation', () => {
  expect(append(undefined, ['a'], [])).toEqual([]);
});
