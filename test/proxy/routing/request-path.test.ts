import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasDotSegment, splitTarget } from '../../../src/proxy/routing/routes.ts';

describe('an HTTP/1.1 request target', () => {
  it.each([
    ['/', '/', ''],
    ['/a/b?c=/../d', '/a/b', '?c=/../d'],
    ['/?', '/', '?'],
    ['/?a?b', '/', '?a?b'],
    ['//host/x', '//host/x', ''],
    ['*', '*', ''],
  ])('%s is split into its parts', (target, path, query) => {
    expect(splitTarget(target)).toEqual({ path, query });
  });
});

describe('a dot segment', () => {
  it.each(['/', '*', '/a.b/..c/...', '/%2e%2ex', '/a;v=1/b', '/a%2fb', '/%252e'])(
    'is not found in %s',
    (path) => {
      expect(hasDotSegment(path)).toBe(false);
    },
  );

  it.each([
    '/.',
    '/..',
    '/a/../b',
    '/a/./b',
    '/a/%2e%2E/b',
    '/a/.%2e',
    '/a/%2e',
    '/a/..;x=1/b',
    '/a/..%2fb',
    '/a%2F..%5cb',
  ])('is found in %s', (path) => {
    expect(hasDotSegment(path)).toBe(true);
  });

  it('is found in every path that a URL parser resolves differently', () => {
    const segment = fc.constantFrom('a', '.', '..', '%2e', '%2E.', '', 'b;c', '..;', '%2f', '...', '%5c..');
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 6 }), (segments) => {
        const path = `/${segments.join('/')}`;
        if (hasDotSegment(path)) return;
        expect(new URL(`http://host${path}`).pathname).toBe(path);
      }),
    );
  });
});
