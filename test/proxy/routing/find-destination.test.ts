import { describe, expect, it } from 'vitest';
import type { SidecarError } from '../../../src/platform/errors.ts';
import { formOf } from '../../../src/proxy/http/syntax.ts';
import { Destinations } from '../../../src/proxy/routing/destinations.ts';
import { type ActiveRoute, routeMatcher } from '../../../src/proxy/routing/routes.ts';
import type { IncomingRequest } from '../../../src/proxy/streams/contract.ts';

function route(name: string, pathPrefix: string, host?: string, basePath = '/v2'): ActiveRoute {
  const matcher = routeMatcher(host === undefined ? { pathPrefix } : { pathPrefix, host });
  const config = { name, stripPrefix: true, upstream: { basePath } };
  return { config, matcher } as unknown as ActiveRoute;
}

const NOTHING_LISTED = {
  forwardProxy: undefined,
  captured: undefined,
  redirected: undefined,
  ownNames: undefined,
};

const ROUTES = [route('named', '/', 'api.test'), route('a', '/a')];

function destination(
  method: string,
  target: string,
  host: string | undefined = 'app.test',
  routes = ROUTES,
): string[] {
  const head = { target, host, targetForm: formOf(method, target) } as IncomingRequest;
  try {
    const found = new Destinations({ ...NOTHING_LISTED, routes }).find(head);
    return [found.route.config.name, found.target];
  } catch (error) {
    return [(error as SidecarError).code];
  }
}

describe('the destination of a request', () => {
  it.each([
    ['GET', '/a/b?c', 'app.test', ['a', '/v2/b?c']],
    ['GET', '/a', undefined, ['a', '/v2/']],
    ['GET', '/x', 'API.test:8080', ['named', '/v2/x']],
    ['OPTIONS', '*', 'api.test', ['named', '*']],
    ['GET', '/x', 'app.test', ['route_not_found']],
    ['OPTIONS', '*', 'app.test', ['route_not_found']],
    ['GET', '/a/../b', 'app.test', ['bad_request']],
    ['GET', 'http://api.test/', 'api.test', ['destination_not_allowed']],
    ['CONNECT', 'api.test:443', 'api.test:443', ['destination_not_allowed']],
  ])('%s %s with Host %s', (method, target, host, expected) => {
    expect(destination(method, target, host)).toEqual(expected);
  });
});

describe('a path with dot segments', () => {
  it.each([
    ['one route for every path', [route('all', '/', undefined, '')], ['all', '/a/../%2e%2e/b']],
    [
      'one for every path of each host',
      [route('named', '/', 'other.test', ''), route('all', '/', undefined, '')],
      ['all', '/a/../%2e%2e/b'],
    ],
    ['a base path', [route('all', '/')], ['bad_request']],
    [
      'another route for some paths',
      [route('b', '/b', undefined, ''), route('all', '/', undefined, '')],
      ['bad_request'],
    ],
    ['a route for some paths', [route('a', '/a', undefined, '')], ['bad_request']],
    ['no route', [], ['bad_request']],
  ])('and %s', (_, routes, expected) => {
    expect(destination('GET', '/a/../%2e%2e/b', 'app.test', routes)).toEqual(expected);
  });
});
