import { describe, expect, it } from 'vitest';
import { CREDENTIAL, judged, ROUTE } from './pods-with-profiles.ts';

const profile = (credential: object, more: object = {}) => ({
  credentials: [{ ...CREDENTIAL, ...credential }],
  routes: [ROUTE],
  ...more,
});

const problemsOf = (spec: unknown, name = 'payments') => {
  const verdict = judged({ name, spec });
  return verdict.state === 'valid'
    ? []
    : verdict.problems.map(({ key, value, expected }) => `${key}: ${value}: ${expected}`);
};

describe('a profile is valid', () => {
  it.each<[string, object]>([
    ['with a credential and a route', profile({})],
    ['with hosts', { credentials: [CREDENTIAL], hosts: [{ host: '*.example.com' }] }],
    ['with its token endpoint', profile({ issuerUrl: undefined, tokenUrl: 'https://sso/token' })],
    ['with a Keycloak', profile({ issuerUrl: undefined, authUrl: 'https://sso', realm: 'shop' })],
    [
      'with a Google key',
      {
        credentials: [
          {
            grant: 'jwt_bearer',
            jwtBearer: { kind: 'google_service_account' },
            scope: 'https://www.googleapis.com/auth/cloud-platform',
            secret: { name: 'google' },
          },
        ],
        routes: [ROUTE],
      },
    ],
    [
      'without a Secret, by its service account',
      profile({
        clientAuth: 'kubernetes_jwt',
        secret: undefined,
        serviceAccountToken: { audience: 'https://login.example.com' },
      }),
    ],
    [
      'with a token that is exchanged',
      profile({
        grant: 'token_exchange',
        serviceAccountToken: { audience: 'sso', file: 'subject_token' },
      }),
    ],
    [
      'with several credentials and routes in any order',
      {
        credentials: [
          { ...CREDENTIAL, name: 'read' },
          { ...CREDENTIAL, name: 'write' },
        ],
        routes: [
          { ...ROUTE, name: 'all', credential: 'read' },
          { ...ROUTE, name: 'orders', match: { pathPrefix: '/orders/' }, credential: 'write' },
        ],
      },
    ],
  ])('%s', (_, spec) => {
    expect(problemsOf(JSON.parse(JSON.stringify(spec)))).toEqual([]);
  });
});

describe('a profile is invalid', () => {
  it.each<[string, unknown, RegExp]>([
    ['without a spec', undefined, /^spec\.credentials: .*a list of 1 to 16 credentials/],
    ['without credentials', { routes: [ROUTE] }, /^spec\.credentials: .*a list of 1 to 16 credentials/],
    [
      'without a purpose',
      { credentials: [CREDENTIAL] },
      /^spec: undefined: routes, hosts or credentials with an output/,
    ],
    [
      'with an unknown key',
      profile({ scopes: 'a' }),
      /^spec\.credentials\[0\]\.scopes: .*did you mean "scope"/,
    ],
    ['with a path of its own', profile({ dir: '/etc' }), /^spec\.credentials\[0\]\.dir: .*one of the keys/],
    [
      'without a provider',
      { credentials: [{ secret: { name: 'a' } }], routes: [ROUTE] },
      /^spec\.credentials\[0\]\.authUrl: /,
    ],
    [
      'with two providers',
      profile({ tokenUrl: 'https://sso/token' }),
      /^spec\.credentials\[0\]\.issuerUrl: .*nothing beside tokenUrl/,
    ],
    [
      'with a provider in clear text',
      profile({ issuerUrl: 'http://sso.example.com' }),
      /^spec\.credentials\[0\]\.issuerUrl: http:\/\/sso\.example\.com: https/,
    ],
    [
      'without a Secret',
      { credentials: [{ issuerUrl: 'https://sso' }], routes: [ROUTE] },
      /^spec\.credentials\[0\]\.secret: undefined: the Secret with client_id, client_secret/,
    ],
    [
      'with a key for a file that nobody reads',
      profile({ secret: { name: 'a', keys: { token: 'x' } } }),
      /^spec\.credentials\[0\]\.secret\.keys\.token: .*client_id, client_secret/,
    ],
    [
      'with a service account token that nobody reads',
      profile({ serviceAccountToken: { audience: 'a' } }),
      /^spec\.credentials\[0\]\.serviceAccountToken\.file: token: /,
    ],
    [
      'with a Secret that nobody reads',
      profile({ clientAuth: 'kubernetes_jwt', serviceAccountToken: { audience: 'a' } }),
      /^spec\.credentials\[0\]\.secret: oauth: nothing/,
    ],
    [
      'with a service account token for too short',
      profile({
        clientAuth: 'kubernetes_jwt',
        secret: undefined,
        serviceAccountToken: { audience: 'a', expirationSeconds: 60 },
      }),
      /expirationSeconds: 60: a whole number of seconds from 600 to 86400/,
    ],
    [
      'with hosts in mode reverse',
      { credentials: [CREDENTIAL], hosts: [{ host: 'a.com' }], mode: 'reverse' },
      /^spec\.mode: reverse: another mode/,
    ],
    [
      'without hosts in mode forward',
      profile({}, { mode: 'forward' }),
      /^spec\.mode: forward: hosts beside it/,
    ],
    [
      'with addresses alone for hosts',
      { credentials: [CREDENTIAL], hosts: [{ host: '10.0.0.1' }] },
      /^spec\.hosts: intercept: a host with a name/,
    ],
    [
      'with an unknown credential',
      profile({}, { routes: [{ ...ROUTE, credential: 'x' }] }),
      /^spec\.routes\[0\]\.credential: x: the name of one of the credentials: none/,
    ],
    [
      'with several credentials and a route that names none',
      {
        credentials: [
          { ...CREDENTIAL, name: 'a' },
          { ...CREDENTIAL, name: 'b' },
        ],
        routes: [ROUTE],
      },
      /^spec\.routes\[0\]\.credential: undefined: the name of one of the credentials: a, b/,
    ],
    [
      'with several credentials without names',
      { credentials: [CREDENTIAL, CREDENTIAL], routes: [ROUTE] },
      /^spec\.credentials\[0\]\.name: .*a name, as there are several credentials/,
    ],
    [
      'with one name twice',
      {
        credentials: [
          { ...CREDENTIAL, name: 'a' },
          { ...CREDENTIAL, name: 'a' },
        ],
        routes: [{ ...ROUTE, credential: 'a' }],
      },
      /^spec\.credentials\[1\]\.name: payments-a: another than that of spec\.credentials\[0\]/,
    ],
    [
      'with two routes for the same requests',
      profile(
        {},
        {
          routes: [
            { ...ROUTE, name: 'a', match: { pathPrefix: '/x/' } },
            { ...ROUTE, name: 'b', match: { pathPrefix: '/x' } },
          ],
        },
      ),
      /^spec\.routes\[1\]\.match: \/x\/: another than that of spec\.routes\[0\]/,
    ],
    [
      'with one host twice',
      { credentials: [CREDENTIAL], hosts: [{ host: 'a.com' }, { host: 'A.com', port: 443 }] },
      /^spec\.hosts\[\d\]\.host: .*another than that of spec\.hosts/,
    ],
    [
      'with a duration without a unit',
      profile({ timeouts: { request: '5' } }),
      /^spec\.credentials\[0\]\.timeouts\.request: 5: a duration/,
    ],
    [
      'with CAs from nowhere',
      profile({ tls: { ca: {} } }),
      /^spec\.credentials\[0\]\.tls\.ca: .*either a configMap or a secret/,
    ],
    [
      'with CAs from two places',
      profile({ tls: { ca: { configMap: { name: 'a' }, secret: { name: 'a' } } } }),
      /^spec\.credentials\[0\]\.tls\.ca: .*either a configMap or a secret/,
    ],
    ['with more than 64 KiB', profile({ scope: 'a'.repeat(65_536) }), /^spec: \d+: at most 65536 characters/],
    [
      'with a name that does not fit',
      profile({ name: 'a'.repeat(60) }, { routes: [{ ...ROUTE, credential: 'a'.repeat(60) }] }),
      /^spec\.credentials\[0\]\.name: .*63/,
    ],
  ])('%s', (_, spec, problem) => {
    const problems = problemsOf(spec === undefined ? undefined : JSON.parse(JSON.stringify(spec)));
    expect(problems).toContainEqual(expect.stringMatching(problem));
  });

  it('with a name that is no part of a path or label', () => {
    expect(problemsOf(profile({}), 'pay.ments')).toEqual([
      expect.stringMatching(/^metadata\.name: pay\.ments: a name of 1 to 63/),
    ]);
  });

  it('with every reason at once', () => {
    const spec = {
      credentials: [{ ...CREDENTIAL, issuerUrl: 'ftp://sso', scop: 'a' }],
      routes: [{ upstream: 'https://api', credential: 'nobody' }],
    };
    expect(problemsOf(spec).map((problem) => problem.split(': ')[0])).toEqual([
      'spec.credentials[0].issuerUrl',
      'spec.credentials[0].scop',
      'spec.routes[0].credential',
    ]);
  });
});

describe('all problems of a profile are reported together', () => {
  const keysOf = (spec: unknown) => problemsOf(spec).map((problem) => problem.split(': ')[0]);
  const named = (name: string, more: object = {}) => ({ ...CREDENTIAL, name, ...more });

  it.each<[string, object, string]>([
    ['the name of a Secret', { secret: { name: 'Bad_Name' } }, 'secret.name'],
    ['a Secret without a name', { secret: {} }, 'secret.name'],
    [
      'the name of a ConfigMap',
      { tls: { ca: { configMap: { name: 'Bad_Name' } } } },
      'tls.ca.configMap.name',
    ],
    ['the name of a Secret with CAs', { tls: { ca: { secret: { key: 'a' } } } }, 'tls.ca.secret.name'],
    [
      'the audience of a service account token',
      { clientAuth: 'kubernetes_jwt', secret: undefined, serviceAccountToken: {} },
      'serviceAccountToken.audience',
    ],
    ['an egress proxy without a URL', { egressProxy: {} }, 'egressProxy.url'],
  ])('%s, and what is wrong elsewhere', (_, first, key) => {
    const spec = {
      credentials: [named('a', first), named('b', { issuerUrl: undefined })],
      routes: [{ ...ROUTE, credential: 'c' }],
    };
    expect(keysOf(JSON.parse(JSON.stringify(spec)))).toEqual([
      `spec.credentials[0].${key}`,
      'spec.routes[0].credential',
      'spec.credentials[1].authUrl',
    ]);
  });

  it('of routes and hosts, too', () => {
    const spec = {
      credentials: [named('a'), named('b', { grant: 'jwt_bearer', basicEncoding: 'raw' })],
      routes: [{ credential: 'a' }],
      hosts: [{ credential: 'a' }, { host: '10.0.0.1', credential: 'b', inject: [{}] }],
    };
    expect(keysOf(spec)).toEqual([
      'spec.routes[0].upstream',
      'spec.hosts[0].host',
      'spec.hosts[1].inject[0]',
      'spec.credentials[1].basicEncoding',
    ]);
  });

  it('of the Secret of one credential beside those of another', () => {
    const spec = {
      credentials: [
        named('a', { secret: { name: 'a', keys: { token: 'x' } } }),
        named('b', { issuerUrl: undefined }),
      ],
      routes: [{ ...ROUTE, credential: 'a' }],
    };
    expect(keysOf(spec)).toEqual(['spec.credentials[1].authUrl', 'spec.credentials[0].secret.keys.token']);
  });

  it.each<[string, object, object, string]>([
    [
      'a provider that is misspelt',
      { issuerUrl: undefined, isuerUrl: 'https://sso' },
      {},
      'credentials[0].isuerUrl',
    ],
    [
      'an upstream that is misspelt',
      {},
      { upstream: undefined, upsteam: 'https://api' },
      'routes[0].upsteam',
    ],
  ])('%s, which is not missing as well', (_, credential, route, key) => {
    const spec = {
      credentials: [named('a', credential)],
      routes: [{ ...ROUTE, credential: 'a', ...route }],
    };
    expect(keysOf(JSON.parse(JSON.stringify(spec)))).toEqual([`spec.${key}`]);
  });

  it('without problems that only follow from another', () => {
    const spec = {
      credentials: [named('a'), named('a')],
      routes: [
        { ...ROUTE, name: 'x', credential: 'nobody' },
        { ...ROUTE, name: 'x', credential: 'nobody' },
      ],
    };
    expect(keysOf(spec)).toEqual([
      'spec.routes[0].credential',
      'spec.routes[1].credential',
      'spec.credentials[1].name',
      'spec.routes[1].name',
      'spec.routes[1].match',
    ]);
    expect(keysOf({ credentials: [CREDENTIAL], mode: 'forward' })).toEqual(['spec', 'spec.mode']);
  });
});

describe('the selector of a ClusterTokenProfile', () => {
  const verdictOn = (expression: object) =>
    judged({
      kind: 'ClusterTokenProfile',
      name: 'crm',
      spec: profile({}, { namespaces: { selector: { matchExpressions: [{ key: 'tier', ...expression }] } } }),
    });

  it.each([
    { operator: 'In' },
    { operator: 'NotIn' },
    { operator: 'Exists', values: ['web'] },
    { operator: 'DoesNotExist', values: ['web'] },
  ])('is refused, and admits nobody, as %j', (expression) => {
    expect(verdictOn(expression)).toMatchObject({
      state: 'invalid',
      namespaces: {},
      problems: [
        {
          key: 'spec.namespaces.selector.matchExpressions[0].values',
          expected: expect.stringContaining('values with the operators In and NotIn'),
        },
      ],
    });
  });

  it.each([
    { operator: 'In', values: ['web'] },
    { operator: 'NotIn', values: ['web'] },
    { operator: 'Exists' },
    { operator: 'DoesNotExist' },
  ])('is valid as %j', (expression) => {
    expect(verdictOn(expression).state).toBe('valid');
  });
});

describe('a credential via the broker', () => {
  const verdictOn = (credential: object, more: object = {}, kind = 'ClusterTokenProfile' as const) =>
    judged({ kind, name: 'payments', spec: profile({ via: 'broker', ...credential }, more) });
  const problems = (verdict: ReturnType<typeof judged>) =>
    verdict.state === 'valid' ? [] : verdict.problems;

  it.each<[string, object, object]>([
    ['for every service account', {}, {}],
    ['for one', {}, { serviceAccounts: ['checkout'] }],
    ['by a signed assertion', { grant: 'jwt_bearer' }, {}],
    ['beside one that is not', {}, { credentials: [{ ...CREDENTIAL, via: 'broker' }] }],
  ])('is valid %s', (_, credential, more) => {
    expect(problems(verdictOn(credential, more))).toEqual([]);
  });

  it('is of a ClusterTokenProfile alone', () => {
    expect(problems(judged({ name: 'payments', spec: profile({ via: 'broker' }) }))).toEqual([
      {
        key: 'spec.credentials[0].via',
        value: 'broker',
        expected: 'sidecar, as the broker serves ClusterTokenProfiles alone',
      },
    ]);
  });

  it.each<[string, object, string]>([
    [
      'by a token of a service account, which the broker has not',
      { clientAuth: 'kubernetes_jwt', secret: undefined, serviceAccountToken: { audience: 'sso' } },
      'spec.credentials[0].serviceAccountToken',
    ],
    [
      'that is the Secret itself',
      { grant: 'static', issuerUrl: undefined, static: { tokenFile: 'key' } },
      'spec.credentials[0].grant',
    ],
    ['that is of the pod', { grant: 'token_exchange' }, 'spec.credentials[0].grant'],
    ['of another kind', { via: 'gateway' }, 'spec.credentials[0].via'],
  ])('is refused %s', (_, credential, key) => {
    expect(
      problems(verdictOn(JSON.parse(JSON.stringify(credential)))).map((problem) => problem.key),
    ).toContain(key);
  });

  it('is available to service accounts', () => {
    expect(problems(verdictOn({ via: 'sidecar' }, { serviceAccounts: ['checkout'] }))).toMatchObject([
      { key: 'spec.serviceAccounts', value: 'checkout' },
    ]);
  });
});
