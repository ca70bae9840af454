import { describe, expect, it } from 'vitest';
import type { RouteConfig } from '../../src/config/config.ts';
import { parseConfig } from '../../src/config/file.ts';
import type { FileConfig } from '../../src/config/file-schema.ts';
import { resolveConfig } from '../../src/config/resolve-config.ts';
import { resolveGateway } from '../../src/config/resolve-gateway.ts';
import { describeProblem, type Problem } from '../../src/platform/problems.ts';

const FILES = { tls: { certFile: '/g/tls.crt', keyFile: '/g/tls.key' }, clientCaFile: '/c/ca.crt' };
const CALLER = { name: 'web', match: { certificate: 'web.test' }, allowedRoutes: ['api'] };

async function resolved(gateway: object, more: object = {}) {
  const problems: Problem[] = [];
  const file = {
    credentials: [{ name: 'default', tokenUrl: 'https://sso.test/token' }],
    routes: [
      { name: 'api', match: { pathPrefix: '/api' }, upstream: 'https://api.test' },
      { name: 'crm', upstream: 'https://crm.test' },
    ],
    gateway: { ...FILES, callers: [CALLER], ...gateway },
    ...more,
  };
  const reading = await parseConfig(JSON.stringify(file), 'file.yaml', problems);
  const config = resolveConfig(reading, {}, problems);
  return { gateway: config.gateway, problems: problems.map(describeProblem) };
}

it('has what is left out put in', async () => {
  const { gateway, problems } = await resolved({}, { limits: { inFlight: 40 } });
  expect(problems).toEqual([]);
  expect(gateway).toEqual({
    ...FILES,
    listen: { host: '::', port: 15_443 },
    callers: [
      {
        name: 'web',
        match: { kind: 'certificate', name: 'web.test' },
        routes: ['api'],
        limits: { inFlight: 10, burst: 1 },
      },
    ],
    drainDelayMs: 5000,
  });
});

it('knows service accounts, where their tokens are asked for', async () => {
  const entry = (serviceAccount: string) => ({
    ...CALLER,
    name: serviceAccount.slice(0, 4),
    match: { serviceAccount },
  });
  const { gateway, problems } = await resolved({
    clientCaFile: undefined,
    serviceAccountTokens: {},
    callers: [entry('shop/web'), entry('tool/*')],
  });
  expect(problems).toEqual([]);
  expect(gateway?.serviceAccountTokens).toEqual({ audience: 'token-sidecar-gateway' });
  expect(gateway?.callers.map(({ match }) => match)).toEqual([
    { kind: 'service_account', namespace: 'shop', serviceAccount: 'web' },
    { kind: 'service_account', namespace: 'tool', serviceAccount: '*' },
  ]);
});

it('knows callers by all that a certificate says, and routes by their credential', async () => {
  const matches = [
    { spiffe: 'spiffe://example.org/ns/shop/*' },
    { spiffe: 'spiffe://example.org/web' },
    { certificate: 'web.shop.example' },
  ];
  const callers = matches.map((match, index) => ({
    name: `c${index}`,
    match,
    allowedCredentials: ['default'],
    limits: { requestsPerSecond: 5, connections: 2 },
  }));
  const { gateway, problems } = await resolved({ callers });
  expect(problems).toEqual([]);
  expect(gateway?.callers.map(({ match }) => match)).toEqual([
    { kind: 'spiffe', uri: 'spiffe://example.org/ns/shop/*' },
    { kind: 'spiffe', uri: 'spiffe://example.org/web' },
    { kind: 'certificate', name: 'web.shop.example' },
  ]);
  expect(gateway?.callers[0]).toMatchObject({
    routes: ['api', 'crm'],
    limits: { inFlight: 1024, requestsPerSecond: 5, burst: 5, connections: 2 },
  });
});

describe('says what is wrong, and what would be right', () => {
  const caller = (entry: object) => ({ callers: [{ ...CALLER, ...entry }] });
  it.each<[string, object, object, string]>([
    ['no certificate', { tls: {} }, {}, 'gateway.tls.certFile: expected the path of a PEM certificate'],
    [
      'no authority',
      { clientCaFile: undefined },
      {},
      'gateway.clientCaFile: expected the path of PEM authorities',
    ],
    [
      'a key elsewhere',
      { tls: { certFile: '/a/tls.crt', keyFile: '/b/tls.key' } },
      {},
      'gateway.tls.keyFile: "/b/tls.key": expected a file in the directory of certFile',
    ],
    [
      'no such route',
      caller({ allowedRoutes: ['crn'] }),
      {},
      'allowedRoutes[0]: "crn": expected the name of a route',
    ],
    [
      'no such credential',
      caller({ allowedCredentials: ['x'] }),
      {},
      'allowedCredentials[0]: "x": expected the name of a credential that a route uses',
    ],
    [
      'nothing allowed',
      caller({ allowedRoutes: undefined }),
      {},
      'callers[0].allowedRoutes: expected names of routes',
    ],
    [
      'two names',
      caller({ match: { certificate: 'a', spiffe: 'spiffe://a/b' } }),
      {},
      'expected a mapping with one of',
    ],
    [
      'no name',
      caller({ match: {} }),
      {},
      'expected a mapping with one of serviceAccount, spiffe and certificate',
    ],
    ['a SPIFFE id that climbs', caller({ match: { spiffe: 'spiffe://a/../b' } }), {}, 'expected a SPIFFE id'],
    ['a wildcard', caller({ match: { certificate: '*.test' } }), {}, 'expected a DNS name'],
    [
      'a name twice',
      { callers: [CALLER, CALLER] },
      {},
      'callers[1].name: "web": expected a name that no other',
    ],
    [
      'a burst of nothing',
      caller({ limits: { burst: 2 } }),
      {},
      'limits.burst: "2": expected requestsPerSecond',
    ],
    [
      'a bound of none',
      caller({ limits: { inFlight: 0 } }),
      {},
      'limits.inFlight: 0: expected a whole number',
    ],
    [
      'a forward proxy',
      {},
      { forwardProxy: { allow: [{ host: 'a.test' }] } },
      'forwardProxy: expected nothing of it',
    ],
    [
      'a token for an app',
      {},
      { credentials: [{ name: 'default', tokenUrl: 'https://sso.test/token', output: { endpoint: true } }] },
      'credentials[0].output: expected nothing of it beside gateway',
    ],
  ])('%s', async (_, gateway, more, expected) => {
    const { problems } = await resolved(gateway, more);
    expect(problems.join('\n').replaceAll(/"(\d+)": expected a whole/g, '$1: expected a whole')).toContain(
      expected,
    );
  });
});

it('looks at each route once or twice, however many callers name them', () => {
  let looks = 0;
  const all = Array.from({ length: 500 }, (_, index) => `route-${index}`);
  const routes = all.map((name, index) => ({
    key: `routes[${index}]`,
    get entry() {
      looks++;
      return { name, credential: `credential-${index}` } as RouteConfig;
    },
  }));
  const callers = Array.from({ length: 100 }, (_, index) => ({
    name: `caller-${index}`,
    match: { certificate: `caller-${index}.test` },
    allowedRoutes: all,
    allowedCredentials: all.map((_, at) => `credential-${at}`),
  }));
  const problems: Problem[] = [];
  const file = { gateway: { ...FILES, callers } } as unknown as FileConfig;
  const gateway = resolveGateway(file, { routes, maxInFlight: 100 }, problems);
  expect(problems).toEqual([]);
  expect(gateway?.callers.map((caller) => caller.routes.length)).toEqual(callers.map(() => 500));
  expect(looks).toBeLessThanOrEqual(2 * routes.length);
});
