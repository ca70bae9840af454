import { describe, expect, it } from 'vitest';
import { get, message, ok, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, type RawUpstream, startUpstream } from './raw-upstream.ts';
import { type RouteOverrides, routeTo, startSidecar } from './sidecar.ts';

async function start(...routes: RouteOverrides[]) {
  const upstream = await startUpstream((arrived) => arrived.answer(ok()));
  const sidecar = await startSidecar({
    routes: routes.map((route, index) => routeTo(upstream, { name: `route-${index}`, ...route })),
  });
  return { upstream, sidecar };
}

/** The target that went upstream, or the code of the refusal. */
async function targetSent(
  upstream: RawUpstream,
  answered: Promise<{ head: { value(name: string): string | undefined } }>,
) {
  const code = (await answered).head.value('token-sidecar-error');
  return code ?? upstream.requests.at(-1)?.head.target;
}

describe('a path prefix matches whole segments', () => {
  it.each([
    ['/a/', '/a', true],
    ['/a/', '/a/', true],
    ['/a/', '/a/x', true],
    ['/a/', '/ab', false],
    ['/a', '/a', true],
    ['/a', '/a/x', true],
    ['/a', '/a?x', true],
    ['/a', '/ab', false],
    ['/a', '/A', false],
    ['/a', '/', false],
    ['/a', '/x/a', false],
    ['/a', '/?/a', false],
    ['/a', '/%61', false],
    ['/a', '//a', false],
    ['/a/b', '/a/b/c', true],
    ['/a/b', '/a', false],
    ['/', '/', true],
    ['/', '/anything', true],
    ['/', '//x', true],
    ['/', '/?', true],
  ])('%s and %s: %s', async (pathPrefix, target, matches) => {
    const { upstream, sidecar } = await start({ match: { pathPrefix } });

    const sent = await targetSent(upstream, sidecar.exchange(get(target)));

    expect(sent).toBe(matches ? target : 'route_not_found');
  });
});

describe('the first matching route is used', () => {
  it.each([
    ['app.test', '/a/x', 'one'],
    ['APP.Test', '/a', 'one'],
    ['app.test:8080', '/a', 'one'],
    ['other.test', '/a', 'two'],
    ['app.test.evil', '/a', 'two'],
    ['app.test', '/b', undefined],
  ])('Host %s, %s: %s', async (host, target, expected) => {
    const one = await startUpstream(answering(ok('one')));
    const two = await startUpstream(answering(ok('two')));
    const sidecar = await startSidecar({
      routes: [
        routeTo(one, { name: 'one', match: { host: 'app.test', pathPrefix: '/a' } }),
        routeTo(two, { name: 'two', match: { pathPrefix: '/a' } }),
        routeTo(one, { name: 'never', match: { pathPrefix: '/a' } }),
      ],
    });

    const answer = await sidecar.exchange(message(`GET ${target} HTTP/1.1`, [`Host: ${host}`]));

    if (expected === undefined) expectProblem(answer, 'route_not_found');
    else expect(answer.body).toBe(expected);
  });
});

describe('the path sent upstream is built from prefix and base path', () => {
  it.each([
    [{ pathPrefix: '/' }, '', false, '/x?y=1', '/x?y=1'],
    [{ pathPrefix: '/' }, '/v2', false, '/x?y=1', '/v2/x?y=1'],
    [{ pathPrefix: '/' }, '/v2', false, '/', '/v2/'],
    [{ pathPrefix: '/a/' }, '/v2', false, '/a/x', '/v2/a/x'],
    [{ pathPrefix: '/a/' }, '/v2', true, '/a/x', '/v2/x'],
    [{ pathPrefix: '/a/' }, '/v2', true, '/a/', '/v2/'],
    [{ pathPrefix: '/a/' }, '/v2', true, '/a', '/v2/'],
    [{ pathPrefix: '/a/' }, '', true, '/a?q', '/?q'],
    [{ pathPrefix: '/a' }, '', true, '/a', '/'],
    [{ pathPrefix: '/a' }, '', true, '/a/', '/'],
    [{ pathPrefix: '/a' }, '', true, '/a//x', '//x'],
    [{ pathPrefix: '/a' }, '', true, '/a/a/b', '/a/b'],
    [{ pathPrefix: '/' }, '', true, '/x', '/x'],
    [{ pathPrefix: '/' }, '', false, '/%7Ex/%2f/a%00?q=%2e%2e/../x', '/%7Ex/%2f/a%00?q=%2e%2e/../x'],
    [
      { pathPrefix: '/' },
      '',
      false,
      '/a;b=c/~!$&\'()*+,=:@?x[]{}|^`"<>',
      '/a;b=c/~!$&\'()*+,=:@?x[]{}|^`"<>',
    ],
    [{ pathPrefix: '/' }, '', false, '/...', '/...'],
    [{ pathPrefix: '/' }, '', false, '/.well-known/x', '/.well-known/x'],
    [{ pathPrefix: '/' }, '', false, '/?', '/?'],
  ])('%j with base %j, strip %s: %s becomes %s', async (match, basePath, stripPrefix, target, expected) => {
    const { upstream, sidecar } = await start({ match, stripPrefix, upstream: { basePath } });

    expect(await targetSent(upstream, sidecar.exchange(get(target)))).toBe(expected);
  });
});

describe('an ambiguous request target is refused', () => {
  it.each([
    '/a/../b',
    '/..',
    '/../b',
    '/a/..',
    '/a/.',
    '/a/./b',
    '/.',
    '/a/%2e%2e/b',
    '/a/%2E%2e/b',
    '/a/.%2e/b',
    '/a/%2E./b',
    '/a/%2e/b',
    '/a/%2e%2e?x',
    '/a\\..\\b',
    '/a\\b',
    '/a#b',
    '/a?b#c',
    '/gr\xfc\xdfe',
    '/a\x7f',
    '/a\x01',
    'a/b',
    '?x',
    '*x',
  ])('%j', async (target) => {
    const { upstream, sidecar } = await start({ upstream: { basePath: '/v1' } });

    const answer = await sidecar.exchange(get(target));

    expectProblem(answer, 'bad_request');
    expect(upstream.text).toBe('');
  });

  it('so that the prefix decides which token is sent', async () => {
    const { upstream, sidecar } = await start({ match: { pathPrefix: '/public' }, stripPrefix: true });

    expectProblem(await sidecar.exchange(get('/public/%2e%2e/admin')), 'bad_request');

    expect(upstream.text).toBe('');
  });
});

describe('other forms of the request target', () => {
  it('in asterisk-form OPTIONS reaches the upstream', async () => {
    const { upstream, sidecar } = await start({});

    expect(await targetSent(upstream, sidecar.exchange(request('OPTIONS', '*')))).toBe('*');
  });

  it('in asterisk-form other methods are refused', async () => {
    const { upstream, sidecar } = await start({});

    expectProblem(await sidecar.exchange(get('*')), 'bad_request');
    expect(upstream.text).toBe('');
  });

  it.each([
    ['absolute-form', get('http://app.test/x')],
    ['absolute-form of https', get('https://app.test/x')],
    ['absolute-form that differs from Host', get('http://169.254.169.254/latest')],
    ['CONNECT', message('CONNECT app.test:443 HTTP/1.1', ['Host: app.test:443'])],
  ])('%s are refused when there is no forward proxy', async (_, bytes) => {
    const { upstream, sidecar } = await start({});

    expectProblem(await sidecar.exchange(bytes), 'destination_not_allowed');
    expect(upstream.text).toBe('');
  });
});
