/** What becomes of pods that name profiles: the annotation `token-sidecar.dev/profile`. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import type { OverridingAnnotation } from '../../../src/injector/pod/annotations.ts';
import { inject } from '../../../src/injector/pod/inject.ts';
import { DEFAULTS } from '../defaults.ts';
import { CREDENTIAL, injectedBy, injectionBy, ROUTE, refusalBy } from './pods-with-profiles.ts';

const PAYMENTS = { name: 'payments', generation: 3, spec: { credentials: [CREDENTIAL], routes: [ROUTE] } };
const route = (pathPrefix: string) => ({ ...ROUTE, match: { pathPrefix } });
const CRM = {
  name: 'crm',
  spec: {
    credentials: [{ ...CREDENTIAL, secret: { name: 'crm-oauth' } }],
    routes: [route('/crm/')],
    imagePullSecrets: ['registry'],
  },
};
const HOSTS = { name: 'mail', spec: { credentials: [CREDENTIAL], hosts: [{ host: 'mail.example.com' }] } };

/** A value for each annotation that overrides a part of a profile. */
const OTHERS: Readonly<Record<OverridingAnnotation, string>> = {
  'token-sidecar.dev/secret': 'other',
  'token-sidecar.dev/auth-url': 'https://other.example.com',
  'token-sidecar.dev/realm': 'other',
  'token-sidecar.dev/scope': 'other',
  'token-sidecar.dev/proof-of-possession': 'dpop',
  'token-sidecar.dev/audience': 'other',
  'token-sidecar.dev/upstream': 'https://other.example.com',
  'token-sidecar.dev/protocol': 'http1',
  'token-sidecar.dev/hosts': 'other.example.com',
};

const cluster = (namespaces: object | undefined, spec: object = PAYMENTS.spec) => ({
  kind: 'ClusterTokenProfile' as const,
  name: 'payments',
  spec: { ...spec, ...(namespaces === undefined ? {} : { namespaces }) },
});

describe('a pod that names a profile', () => {
  it.each(Object.entries(OTHERS))('is another with %s', (annotation, other) => {
    const { issuerUrl, ...rest } = CREDENTIAL;
    const realm = { authUrl: issuerUrl, realm: 'shop' };
    const profile = { name: 'shop', spec: { credentials: [{ ...rest, ...realm }], routes: [ROUTE] } };
    const without = injectedBy([profile]);
    const { injection } = injectionBy([profile], { annotations: { [annotation]: other } });
    if (injection.result !== 'injected') throw new Error(JSON.stringify(injection));
    expect(injection.patch).not.toEqual(without.injection.patch);
  });

  it('has its tokens bound to a key as the profile says, unless the annotation says otherwise', () => {
    const dpop = { keyFile: 'key' };
    const bound = { ...CREDENTIAL, proofOfPossession: 'dpop', dpop };
    const profile = { name: 'payments', spec: { credentials: [bound], routes: [ROUTE] } };
    const said = { proofOfPossession: 'dpop', dpop };
    expect(injectedBy([profile])).toMatchObject({ configuration: { credentials: [said] } });
    const annotations = { 'token-sidecar.dev/proof-of-possession': 'dpop' };
    expect(injectedBy([PAYMENTS], { annotations })).toMatchObject({
      configuration: { credentials: [{ proofOfPossession: 'dpop' }] },
    });
    const none = { 'token-sidecar.dev/proof-of-possession': 'none' };
    const plain = { ...profile.spec, credentials: [{ ...CREDENTIAL, proofOfPossession: 'dpop' }] };
    expect(injectedBy([{ name: 'payments', spec: plain }], { annotations: none })).toMatchObject({
      configuration: { credentials: [{ proofOfPossession: 'none' }] },
    });
  });

  it('needs no other annotation, and gets none of the default settings', () => {
    const defaults = {
      authUrl: 'https://default',
      secret: 'default',
      upstream: 'https://default',
      scope: 'default',
    };
    const { configuration, pod } = injectedBy([PAYMENTS], { defaults });
    expect(JSON.stringify(pod)).not.toMatch(/"(https:\/\/)?default"/);
    expect(configuration).toEqual({
      credentials: [
        { name: 'payments', issuerUrl: CREDENTIAL.issuerUrl, dir: '/var/run/secrets/token-sidecar/payments' },
      ],
      routes: [{ name: 'payments', upstream: ROUTE.upstream, credential: 'payments' }],
    });
  });

  it('has a sidecar with the configuration of its profiles', async () => {
    const { configuration } = injectedBy([PAYMENTS, CRM, HOSTS]);
    const directory = mkdtempSync(join(tmpdir(), 'token-sidecar-profiles-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const text = join(directory, 'token-sidecar.yaml');
    writeFileSync(text, JSON.stringify(configuration));
    const config = await loadConfig({ config: { key: '--config', text } });
    expect(config.credentials.map(({ name }) => name)).toEqual(['payments', 'crm', 'mail']);
    expect(config.routes.map(({ name, match }) => [name, match.pathPrefix])).toEqual([
      ['crm', '/crm/'],
      ['payments', '/'],
    ]);
    expect(config.forwardProxy).toMatchObject({ connect: 'intercept', otherHosts: 'pass' });
  });

  it('names its profiles in an annotation, and is found by its label', () => {
    const { pod } = injectedBy([PAYMENTS, CRM]);
    expect(pod.metadata).toMatchObject({
      annotations: { 'token-sidecar.dev/profiles-in-use': 'TokenProfile/payments@3, TokenProfile/crm' },
      labels: { 'token-sidecar.dev/has-profile': 'true' },
    });
  });

  it('mounts of each Secret what is read, each in a volume of its own, and pulls by their Secrets', () => {
    const { pod, injection } = injectedBy([PAYMENTS, CRM]);
    expect(injection.secrets).toEqual(['oauth', 'crm-oauth']);
    expect(JSON.stringify(pod.spec)).toContain('"imagePullSecrets":[{"name":"registry"}]');
    expect(pod.spec.initContainers[0]?.volumeMounts?.map(({ name }) => name)).toEqual([
      'token-sidecar-credentials-1',
      'token-sidecar-credentials-2',
      'token-sidecar-config',
    ]);
    expect(pod.spec.containers[0]?.volumeMounts).toBeUndefined();
  });

  it('is in the mode that the profiles need', () => {
    const proxy = ({ pod }: ReturnType<typeof injectedBy>) =>
      pod.spec.containers[0]?.env?.some(({ name }) => name === 'HTTPS_PROXY') ?? false;
    expect(proxy(injectedBy([PAYMENTS, CRM], { defaults: { mode: 'forward' } }))).toBe(false);
    expect(proxy(injectedBy([PAYMENTS, HOSTS]))).toBe(true);
  });

  it('has the same for containers that come later, and nothing more at a second pass', () => {
    const { pod } = injectedBy([PAYMENTS, HOSTS]);
    const again = inject(pod, { name: 'team' }, DEFAULTS, {});
    expect(again).toMatchObject({ result: 'skipped', reason: 'already_injected' });
    const later = { ...pod, spec: { ...pod.spec, containers: [...pod.spec.containers, { name: 'late' }] } };
    const second = inject(later, { name: 'team' }, DEFAULTS, {});
    expect(second).toMatchObject({ result: 'injected', reason: 'later_containers' });
    expect(JSON.stringify(second)).toContain('HTTPS_PROXY');
  });
});

describe('annotations beside a profile', () => {
  it('override it', () => {
    const annotations = {
      'token-sidecar.dev/secret': 'other',
      'token-sidecar.dev/auth-url': 'https://sso.example.com',
      'token-sidecar.dev/realm': 'other',
      'token-sidecar.dev/scope': 'read',
      'token-sidecar.dev/audience': 'orders',
      'token-sidecar.dev/upstream': 'https://other.example.com',
      'token-sidecar.dev/protocol': 'http1',
      'token-sidecar.dev/log-level': 'debug',
    };
    const { configuration, injection, pod } = injectedBy([PAYMENTS], { annotations });
    expect(injection.secrets).toEqual(['other']);
    expect(configuration.credentials).toEqual([
      {
        name: 'payments',
        dir: '/var/run/secrets/token-sidecar/payments',
        authUrl: 'https://sso.example.com',
        allowInsecureTokenUrl: false,
        realm: 'other',
        scope: 'read',
        audience: 'orders',
      },
    ]);
    expect(configuration.routes).toMatchObject([
      { name: 'payments', upstream: 'https://other.example.com', protocol: 'http1' },
    ]);
    expect(pod.spec.initContainers[0]?.env?.map(({ name }) => name)).toEqual([
      'TOKEN_SIDECAR_CONFIG',
      'TOKEN_SIDECAR_LOG_LEVEL',
      'POD_NAME',
      'POD_NAMESPACE',
      'NODE_NAME',
    ]);
  });

  it('in place of hosts take their Secrets and CAs out of the pod, too', () => {
    const tls = { ca: { configMap: { name: 'old-ca' } }, clientCertificate: 'old-certificate' };
    const spec = { credentials: [CREDENTIAL], hosts: [{ host: 'mail.example.com', tls }] };
    const annotations = { 'token-sidecar.dev/hosts': 'a.example.com' };
    const kept = JSON.stringify(injectedBy([{ name: 'mail', spec }]).pod.spec);
    expect([kept.includes('old-ca'), kept.includes('old-certificate')]).toEqual([true, true]);
    const { pod, configuration } = injectedBy([{ name: 'mail', spec }], { annotations });
    expect(JSON.stringify(pod.spec)).not.toMatch(/old-ca|old-certificate/);
    expect(JSON.stringify(configuration)).not.toContain('tls');
  });

  it('add a route where there is none, and replace hosts', () => {
    const annotations = {
      'token-sidecar.dev/upstream': 'https://other.example.com',
      'token-sidecar.dev/hosts': 'a.example.com:8443',
    };
    const { configuration } = injectedBy([HOSTS], { annotations });
    expect(configuration.routes).toEqual([
      { name: 'default', credential: 'mail', upstream: 'https://other.example.com' },
    ]);
    expect(configuration.forwardProxy?.allow).toEqual([
      { host: 'a.example.com', port: 8443, credential: 'mail' },
    ]);
  });

  it.each([
    [
      { 'token-sidecar.dev/scope': 'read' },
      'token-sidecar.dev/scope: expected nothing beside profiles with several credentials',
    ],
    [
      { 'token-sidecar.dev/upstream': 'https://x' },
      'token-sidecar.dev/upstream: expected nothing beside profiles with several routes',
    ],
    [
      { 'token-sidecar.dev/hosts': 'a.com' },
      'token-sidecar.dev/hosts: expected nothing beside profiles with several credentials',
    ],
    [
      { 'token-sidecar.dev/config-map': 'routes' },
      'token-sidecar.dev/config-map: expected nothing beside token-sidecar.dev/profile',
    ],
  ])('that mean one of several are refused: %j', (annotations, message) => {
    expect(refusalBy([PAYMENTS, CRM], { annotations })).toContain(message);
  });

  it.each([
    [
      [PAYMENTS],
      { 'token-sidecar.dev/mode': 'forward' },
      'token-sidecar.dev/mode: "forward": expected reverse, as no profile names hosts',
    ],
    [
      [HOSTS],
      { 'token-sidecar.dev/mode': 'reverse' },
      'token-sidecar.dev/mode: "reverse": expected another than reverse, because a profile names hosts',
    ],
    [
      [HOSTS],
      { 'token-sidecar.dev/native-sidecar': 'false' },
      'token-sidecar.dev/native-sidecar: "false": expected "true", because a profile names hosts',
    ],
    [
      [HOSTS],
      { 'token-sidecar.dev/protocol': 'h2' },
      'token-sidecar.dev/protocol: expected nothing beside profiles without a route',
    ],
    [
      [PAYMENTS],
      { 'token-sidecar.dev/realm': 'a' },
      'token-sidecar.dev/realm: expected nothing beside a profile with issuerUrl',
    ],
    [
      [PAYMENTS],
      { 'token-sidecar.dev/profile': 'a,,b' },
      'token-sidecar.dev/profile: "a,,b": expected 1 to 16 names of profiles',
    ],
    [[PAYMENTS], { 'token-sidecar.dev/profile': 'payments, payments' }, 'by commas, each once'],
    [
      [PAYMENTS],
      { 'token-sidecar.dev/configuration': '{}' },
      'token-sidecar.dev/configuration: "{}": expected nothing: only the injector writes it',
    ],
  ] as const)('that do not go with it are refused', (profiles, annotations, message) => {
    expect(refusalBy(profiles, { annotations })).toContain(message);
  });
});

describe('a pod is refused', () => {
  it('where profiles are switched off', () => {
    const annotations = { 'token-sidecar.dev/inject': 'true', 'token-sidecar.dev/profile': 'payments' };
    const pod = { metadata: { annotations }, spec: { containers: [{ name: 'app' }] } };
    expect(inject(pod, { name: 'team' }, DEFAULTS, {})).toMatchObject({
      result: 'rejected',
      message: expect.stringContaining(
        'token-sidecar.dev/profile: "payments": expected nothing, as profiles',
      ),
    });
  });

  it('with every profile that is missing or invalid, and everything that is wrong with each', () => {
    const broken = { name: 'broken', spec: { credentials: [{ ...CREDENTIAL, scop: 'a', realm: 'b' }] } };
    const annotations = { 'token-sidecar.dev/profile': 'nowhere, broken, payments' };
    const message = refusalBy([broken, PAYMENTS], { annotations });
    expect(message).toContain(
      'token-sidecar.dev/profile: "nowhere": expected the name of a TokenProfile in the namespace team',
    );
    expect(message).toContain('TokenProfile broken: spec.credentials[0].scop: ');
    expect(message).toContain(
      'TokenProfile broken: spec: expected routes, hosts or credentials with an output',
    );
    expect(message).not.toContain('TokenProfile payments');
  });

  it.each([
    [
      { ...CRM, spec: { ...CRM.spec, routes: [ROUTE] } },
      'TokenProfile crm: spec.routes[0].match: "/": expected another than that of TokenProfile payments: spec.routes[0]',
    ],
    [
      { name: 'pay', spec: { credentials: [{ ...CREDENTIAL, name: 'ments' }], routes: [route('/x')] } },
      undefined,
    ],
  ])('whose profiles take the same requests', (other, message) => {
    if (message === undefined) expect(injectionBy([PAYMENTS, other]).injection.result).toBe('injected');
    else expect(refusalBy([PAYMENTS, other])).toContain(message);
  });

  it.each([
    [{ host: 'mail.example.com', port: 8443 }, 'mail.example.com:8443'],
    [{ host: 'MAIL.example.com' }, 'MAIL.example.com'],
  ])('whose profiles name the same host: %j', (host, shown) => {
    const other = { name: 'other', spec: { credentials: [CREDENTIAL], hosts: [host] } };
    expect(refusalBy([HOSTS, other])).toContain(
      `TokenProfile other: spec.hosts[0].host: "${shown}": expected another than that of TokenProfile mail: spec.hosts[0]`,
    );
  });

  it('whose profiles give two credentials one name', () => {
    const one = { name: 'a-b', spec: { credentials: [CREDENTIAL], routes: [route('/1')] } };
    const two = { name: 'a', spec: { credentials: [{ ...CREDENTIAL, name: 'b' }], routes: [route('/2')] } };
    expect(refusalBy([one, two])).toContain('TokenProfile a: spec.credentials[0].name: "a-b"');
  });

  it('whose profiles have too much together, be it little in each', () => {
    const many = (name: string) => ({
      name,
      spec: {
        credentials: Array.from({ length: 16 }, (_, at) => ({ ...CREDENTIAL, name: `c${at}` })),
        routes: Array.from({ length: 64 }, (_, at) => ({
          ...route(`/${name}/${at}`),
          name: `r${at}`,
          credential: 'c0',
        })),
        hosts: Array.from({ length: 50 }, (_, at) => ({ host: `h${at}.${name}.com`, credential: 'c0' })),
      },
    });
    expect(injectionBy([many('a'), many('b')]).injection.result).toBe('injected');
    expect(refusalBy([many('a'), many('b'), many('c')])).toBe(
      [
        'token-sidecar: the pod asks for the sidecar and cannot have it: token-sidecar.dev/profile: "48": expected profiles with at most 32 credentials together',
        'token-sidecar.dev/profile: "192": expected profiles with at most 128 routes together',
        'token-sidecar.dev/profile: "150": expected profiles with at most 100 hosts together',
      ].join('; '),
    );
  });

  it('whose profiles are too large together', () => {
    const claims = (value: string) =>
      Object.fromEntries(Array.from({ length: 14 }, (_, i) => [`c${i}`, value]));
    const profiles = ['a', 'b', 'c'].map((name) => ({
      name,
      spec: {
        credentials: [
          {
            ...CREDENTIAL,
            grant: 'jwt_bearer',
            jwtBearer: { claims: claims('x'.repeat(4000)) },
            secret: { name: 'a' },
          },
        ],
        routes: [route(`/${name}`)],
      },
    }));
    expect(refusalBy(profiles)).toContain('expected profiles of at most 131072 characters together');
  });

  it('where a container mounts what is the sidecar’s alone', () => {
    const spec = { containers: [{ name: 'app', volumeMounts: [{ name: 'token-sidecar-credentials-2' }] }] };
    expect(refusalBy([PAYMENTS], { spec })).toContain('spec.containers[0].volumeMounts[0].name');
  });
});

describe('a ClusterTokenProfile', () => {
  it.each<[string, object | undefined, string]>([
    ['nobody, where nothing is said', undefined, 'rejected'],
    ['nobody, where it says nothing of them', {}, 'rejected'],
    ['those that it names', { names: ['other', 'team'] }, 'injected'],
    ['no others', { names: ['other'] }, 'rejected'],
    ['those with its labels', { selector: { matchLabels: { tier: 'web' } } }, 'injected'],
    ['not those without', { selector: { matchLabels: { tier: 'data' } } }, 'rejected'],
    ['all, by an empty selector', { selector: {} }, 'injected'],
  ])('admits %s', (_, namespaces, result) => {
    const { injection } = injectionBy([cluster(namespaces)], { labels: { tier: 'web' } });
    expect(injection.result).toBe(result);
  });

  it('admits nobody by labels that are not known', () => {
    expect(refusalBy([cluster({ selector: {} })])).toContain(
      'token-sidecar.dev/profile: "payments": expected a ClusterTokenProfile that admits the namespace team',
    );
  });

  it('does not show its problems to pods that it does not admit', () => {
    const message = refusalBy([
      cluster({ names: ['other'] }, { credentials: [{ ...CREDENTIAL, scop: 'x' }] }),
    ]);
    expect(message).not.toContain('scop');
  });

  it('is hidden by a TokenProfile of the same name', () => {
    const { injection } = injectionBy([PAYMENTS, { ...cluster({ names: ['team'] }), name: 'payments' }], {
      annotations: { 'token-sidecar.dev/profile': 'payments' },
    });
    expect(JSON.stringify(injection)).toContain('TokenProfile/payments@3');
  });
});

describe('where the operator limits what annotations may say', () => {
  const allowed = { authHosts: ['sso.example.com'], upstreamHosts: ['api.corp.example.com'] };

  it('a TokenProfile is limited like them', () => {
    const message = refusalBy([PAYMENTS, HOSTS], { defaults: { allowed } });
    expect(message).toContain(
      'TokenProfile payments: spec.credentials[0].issuerUrl: "https://login.example.com": expected a host that the operator allows: sso.example.com',
    );
    expect(message).toContain('TokenProfile payments: spec.routes[0].upstream: "https://api.example.com"');
    expect(message).toContain('TokenProfile mail: spec.hosts[0].host: "https://mail.example.com:443"');
  });

  it('a ClusterTokenProfile is the operator’s own word', () => {
    const { injection } = injectionBy([cluster({ names: ['team'] })], { defaults: { allowed } });
    expect(injection.result).toBe('injected');
  });

  it('annotations beside it are limited as ever', () => {
    const annotations = { 'token-sidecar.dev/upstream': 'https://evil.example.com' };
    const message = refusalBy([cluster({ names: ['team'] })], { defaults: { allowed }, annotations });
    expect(message).toContain('token-sidecar.dev/upstream: "https://evil.example.com": expected a host');
  });

  it('neither may bring CAs, which are the tenant’s to write', () => {
    const tls = { ca: { configMap: { name: 'mine' } } };
    const spec = { ...PAYMENTS.spec, credentials: [{ ...CREDENTIAL, tls }] };
    expect(refusalBy([cluster({ names: ['team'] }, spec)], { defaults: { allowed } })).toContain(
      'ClusterTokenProfile payments: spec.credentials[0].tls.ca: expected nothing, where the operator limits hosts',
    );
  });
});

describe('where the operator limits hosts, a tenant cannot pass for one of them, nor have the Secret itself sent', () => {
  const allowed = { authHosts: ['login.example.com'] };
  const withTls = (list: 'credentials' | 'routes') => {
    const tls = { serverName: 'mine.example.net' };
    return {
      credentials: [list === 'credentials' ? { ...CREDENTIAL, tls } : CREDENTIAL],
      routes: [list === 'routes' ? { ...ROUTE, tls } : ROUTE],
    };
  };
  const fixed = {
    credentials: [{ grant: 'static', static: { tokenFile: 'client_secret' }, secret: { name: 'oauth' } }],
    routes: [ROUTE],
  };

  it.each(['credentials', 'routes'] as const)('by a name for the certificate of its %s', (list) => {
    expect(refusalBy([{ name: 'a', spec: withTls(list) }], { defaults: { allowed } })).toContain(
      `TokenProfile a: spec.${list}[0].tls.serverName: expected nothing, where the operator limits hosts`,
    );
    expect(injectionBy([{ name: 'a', spec: withTls(list) }]).injection.result).toBe('injected');
    const own = cluster({ names: ['team'] }, withTls(list));
    expect(injectionBy([own], { defaults: { allowed } }).injection.result).toBe('injected');
  });

  it('as a static token to an upstream of its own', () => {
    const reason =
      'spec.credentials[0].grant: "static": expected another, where the operator limits providers';
    expect(refusalBy([{ name: 'a', spec: fixed }], { defaults: { allowed } })).toContain(reason);
    expect(injectionBy([{ name: 'a', spec: fixed }]).injection.result).toBe('injected');
    const own = cluster({ names: ['team'] }, fixed);
    expect(injectionBy([own], { defaults: { allowed } }).injection.result).toBe('injected');
    for (const annotations of [
      { 'token-sidecar.dev/upstream': 'https://mine.example.net' },
      { 'token-sidecar.dev/hosts': 'mine.example.net' },
      { 'token-sidecar.dev/secret': 'other' },
    ]) {
      expect(refusalBy([own], { defaults: { allowed }, annotations })).toContain(reason);
    }
  });
});

describe('clear text to a provider', () => {
  const clear = { ...CREDENTIAL, issuerUrl: 'http://sso.team.svc', allowInsecureTokenUrl: true };
  const spec = { credentials: [clear], routes: [{ upstream: 'http://api.team.svc' }] };

  it('is for the operator to allow in a TokenProfile', () => {
    expect(refusalBy([{ name: 'a', spec }])).toContain(
      'TokenProfile a: spec.credentials[0].allowInsecureTokenUrl: "true": expected nothing, unless the operator allows it',
    );
  });

  it('is configured explicitly if it is allowed', () => {
    const { injection } = injectedBy([{ name: 'a', spec }], { defaults: { allowInsecureTokenUrl: true } });
    expect(injection.warnings).toEqual([
      'TokenProfile a: spec.credentials[0].allowInsecureTokenUrl: http carries the client secret in clear',
      'TokenProfile a: spec.routes[0].upstream: http carries the access token in clear',
    ]);
  });
});
