import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hostName, matchRoute, routeMatcher, upstreamTarget } from '../../../src/proxy/routing/routes.ts';

function route(name: string, pathPrefix: string, host?: string) {
  return { name, matcher: routeMatcher(host === undefined ? { pathPrefix } : { pathPrefix, host }) };
}

describe('a path prefix matches whole segments', () => {
  it.each([
    ['/a', '/a', true],
    ['/a', '/a/', true],
    ['/a', '/a/x', true],
    ['/a', '/ab', false],
    ['/a', '/', false],
    ['/a', '/A', false],
    ['/a/', '/a', true],
    ['/a/', '/a/', true],
    ['/a/', '/ab', false],
    ['/a/b', '/a', false],
    ['/a/b', '/a/b/c', true],
    ['/', '/', true],
    ['/', '/a/b', true],
    ['/', '*', true],
    ['/a', '*', false],
  ])('%s and %s: %s', (prefix, path, matches) => {
    expect(matchRoute([route('r', prefix)], 'h', path) !== undefined).toBe(matches);
  });
});

it.each([
  ['api.example.com', 'api.example.com'],
  ['API.example.com:8080', 'api.example.com'],
  ['127.0.0.1:1', '127.0.0.1'],
  ['[::1]:80', '[::1]'],
  ['[::1]', '[::1]'],
])('the host of %s is %s', (authority, host) => {
  expect(hostName(authority)).toBe(host);
});

describe('the first matching route is used', () => {
  const routes = [route('host', '/', 'api.test'), route('long', '/a/b'), route('short', '/a')];
  it.each([
    ['api.test', '/a/b', 'host'],
    ['other.test', '/a/b', 'long'],
    [undefined, '/a/b/c', 'long'],
    [undefined, '/a/c', 'short'],
    ['other.test', '/', undefined],
  ])('%s %s: %s', (host, path, name) => {
    expect(matchRoute(routes, host, path)?.name).toBe(name);
  });
});

describe('the path sent upstream', () => {
  const upstream = (basePath: string) =>
    ({ protocol: 'http', host: 'h', port: 1, authority: 'h:1', basePath }) as const;
  it.each([
    ['/a', false, '', '/a/x', '/a/x'],
    ['/a', true, '', '/a/x', '/x'],
    ['/a/', true, '', '/a', '/'],
    ['/a', true, '/v2', '/a', '/v2/'],
    ['/a', true, '/v2', '/a//x', '/v2//x'],
    ['/', true, '/v2', '/x', '/v2/x'],
    ['/', false, '/v2', '/', '/v2/'],
    ['/', true, '/v2', '*', '*'],
  ])('for prefix %s, strip %s, base %j: %s becomes %s', (prefix, stripPrefix, basePath, path, expected) => {
    const { matcher } = route('r', prefix);
    expect(upstreamTarget({ stripPrefix, upstream: upstream(basePath) }, matcher, { path, query: '' })).toBe(
      expected,
    );
    if (path === '*') return;
    expect(
      upstreamTarget({ stripPrefix, upstream: upstream(basePath) }, matcher, { path, query: '?q=/a' }),
    ).toBe(`${expected}?q=/a`);
  });

  it('always begins with the base path and a slash', () => {
    const path = fc.array(fc.constantFrom('a', 'b', '')).map((segments) => `/${segments.join('/')}`);
    fc.assert(
      fc.property(path, path, fc.boolean(), (prefix, target, stripPrefix) => {
        const { matcher } = route('r', prefix);
        if (matchRoute([{ matcher }], undefined, target) === undefined) return;
        const sent = upstreamTarget({ stripPrefix, upstream: upstream('/base') }, matcher, {
          path: target,
          query: '',
        });
        expect(sent.startsWith('/base/')).toBe(true);
        expect(target.endsWith(sent.slice('/base/'.length))).toBe(true);
      }),
    );
  });
});
