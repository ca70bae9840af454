import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SidecarError } from '../../src/errors.ts';
import { parseRequestTarget } from '../../src/proxy/request-target.ts';

function codeOf(method: string, target: string, maxBytes = 100): string | undefined {
  try {
    parseRequestTarget(method, target, maxBytes);
    return undefined;
  } catch (error) {
    return (error as SidecarError).code;
  }
}

describe('a request target', () => {
  it.each([
    ['GET', '/', '/', ''],
    ['GET', '/a/b?c=/../d', '/a/b', '?c=/../d'],
    ['GET', '/?', '/', '?'],
    ['GET', '//host/x', '//host/x', ''],
    ['GET', '/a.b/..c/...', '/a.b/..c/...', ''],
    ['GET', '/%2e%2ex', '/%2e%2ex', ''],
    ['GET', '/a;v=1/b', '/a;v=1/b', ''],
    ['OPTIONS', '*', '*', ''],
  ])('%s %s is taken apart', (method, target, path, query) => {
    expect(parseRequestTarget(method, target, 100)).toEqual({ path, query });
  });

  it.each([
    ['GET', '*'],
    ['GET', 'a'],
    ['GET', ''],
    ['GET', '?a'],
    ['GET', '/a b'],
    ['GET', '/a#b'],
    ['GET', '/a\\b'],
    ['GET', '/?a\\b'],
    ['GET', '/\x7f'],
    ['GET', '/\xe9'],
    ['GET', '/\x00'],
    ['GET', '/.'],
    ['GET', '/..'],
    ['GET', '/a/../b'],
    ['GET', '/a/./b'],
    ['GET', '/a/%2e%2E/b'],
    ['GET', '/a/.%2e'],
    ['GET', '/a/%2e?x'],
    ['GET', '/a/..;x=1/b'],
    ['GET', '/a/..%2fb'],
    ['GET', '/a%2F..%5cb'],
  ])('%s %j is refused', (method, target) => {
    expect(codeOf(method, target)).toBe('bad_request');
  });

  it.each([
    ['GET', 'http://a/b'],
    ['GET', 'https://a'],
    ['CONNECT', 'a:443'],
    ['OPTIONS', 'http://a'],
  ])('%s %s asks for a forward proxy', (method, target) => {
    expect(codeOf(method, target)).toBe('destination_not_allowed');
  });

  it('has a longest length', () => {
    expect(codeOf('GET', '/123456789', 10)).toBeUndefined();
    expect(codeOf('GET', '/1234567890', 10)).toBe('uri_too_long');
  });

  it('that is accepted cannot be resolved to another path by a URL parser', () => {
    const segment = fc.constantFrom('a', '.', '..', '%2e', '%2E.', '', 'b;c', '..;', '%2f', '...', '%5c..');
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 6 }), (segments) => {
        const target = `/${segments.join('/')}`;
        if (codeOf('GET', target) !== undefined) return;
        expect(new URL(`http://host${target}`).pathname).toBe(target);
      }),
    );
  });
});
