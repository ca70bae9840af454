import { describe, expect, it } from 'vitest';
import type { RouteConfig } from '../../../src/config/config.ts';
import type { Destination } from '../../../src/proxy/routing/routes.ts';
import { ownNames, refuseCrossSite } from '../../../src/proxy/transaction/admission.ts';
import { routeTo } from '../../wire/sidecar.ts';

const NAMES = new Set(['api.test']);

function refused(
  fields: readonly string[],
  { absolute = '', bearer = true, tunnel = false, host = 'api.test' },
) {
  const destination = { route: { bearer: bearer ? {} : undefined }, tunnel } as unknown as Destination;
  const head: Parameters<typeof refuseCrossSite>[0] = {
    fields: [...fields],
    host,
    target: absolute === '' ? '/' : absolute,
    targetForm: absolute === '' ? 'origin' : 'absolute',
  };
  try {
    refuseCrossSite(head, destination, NAMES);
    return undefined;
  } catch (error) {
    expect(error).toMatchObject({ code: 'cross_site_request' });
    return (error as Error).message;
  }
}

const OTHER_SITE = expect.stringContaining('another site');
const FOREIGN = expect.stringContaining('no route has');

describe('the cross-site check of a request for a route', () => {
  it.each<[readonly string[], string, unknown]>([
    [[], 'api.test', undefined],
    [[], 'evil.test', FOREIGN],
    [['Origin', 'http://api.test'], 'api.test', undefined],
    [['Origin', 'https://api.test'], 'api.test', OTHER_SITE],
    [['Origin', 'http://evil.test'], 'api.test', OTHER_SITE],
    [['Origin', 'http://api.test', 'origin', 'http://api.test'], 'api.test', OTHER_SITE],
    [['Sec-Fetch-Site', 'cross-site'], 'api.test', OTHER_SITE],
    [['Sec-Fetch-Site', 'same-origin'], 'api.test', undefined],
  ])('with %j and Host %s: %s', (fields, host, expected) => {
    expect(refused(fields, { host })).toEqual(expected);
  });

  it('is skipped for routes without a token and for tunnels', () => {
    const fields = ['Sec-Fetch-Site', 'cross-site'];
    expect(refused(fields, { bearer: false })).toBeUndefined();
    expect(refused(fields, { tunnel: true })).toBeUndefined();
  });
});

describe('the cross-site check of a forward proxy request', () => {
  it.each<[string, readonly string[], unknown]>([
    ['http://b.test/', [], undefined],
    ['http://b.test/', ['Origin', 'http://b.test'], undefined],
    ['http://b.test/', ['Origin', 'https://b.test'], OTHER_SITE],
    ['https://b.test/', ['Origin', 'https://b.test'], undefined],
    ['https://b.test/', ['Origin', 'http://b.test'], OTHER_SITE],
    ['http://b.test/', ['Origin', 'http://api.test'], OTHER_SITE],
  ])('for %s with %j: %s', (absolute, fields, expected) => {
    expect(refused(fields, { absolute })).toEqual(expected);
  });
});

it('the sidecar’s own names are those of routes, of their upstreams and of the listener', () => {
  const routes: RouteConfig[] = [
    routeTo({ address: { host: 'up.test', port: 1 } }, { match: { host: 'API.test' } }),
    routeTo({ address: { host: '::1', port: 1 } }),
  ];
  expect([...ownNames(routes, { host: 'Sidecar.test', port: 1 })].toSorted()).toEqual([
    'api.test',
    'sidecar.test',
    'up.test',
  ]);
});
