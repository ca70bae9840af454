import { describe, expect, it } from 'vitest';
import { type AllowLists, allowedHost, allowedImage } from '../../src/injector/pod/allow-lists.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import { ASKING, DEFAULTS } from './defaults.ts';

/** The pod's verdict where the operator limits what annotations may name. */
function verdict(
  annotations: Readonly<Record<string, string>>,
  allowed: AllowLists,
  defaults = {},
  spec = {},
): string {
  const named = Object.entries(annotations).map(([name, value]) => [`token-sidecar.dev/${name}`, value]);
  const pod = {
    metadata: { annotations: { ...ASKING, ...Object.fromEntries(named) } },
    spec: { containers: [{ name: 'app' }], ...spec },
  };
  const injection = inject(pod, { name: 'team' }, { ...DEFAULTS, ...defaults, allowed }, {});
  return injection.result === 'rejected' ? injection.message : injection.result;
}

describe('hosts that get the client secret', () => {
  it.each([
    ['https://sso.example.com', 'sso.example.com'],
    ['https://sso.example.com:443/base', 'sso.example.com'],
    ['https://SSO.example.com.', 'sso.example.com'],
    ['https://sso.example.com:8443', 'sso.example.com:8443'],
    ['https://a.b.example.com', '*.example.com'],
    ['https://sso.example.com./base/%2e%2e/', 'sso.example.com'],
  ])('%s is on the list %s', (url, entry) => {
    expect(verdict({ 'auth-url': url }, { authHosts: ['other', entry] })).toBe('injected');
  });

  it.each([
    ['https://evil.example', 'sso.example.com'],
    ['https://sso.example.com.evil.example', 'sso.example.com'],
    ['https://evilsso.example.com', 'sso.example.com'],
    ['https://evilexample.com', '*.example.com'],
    ['https://example.com', '*.example.com'],
    ['https://sso.example.com:8443', 'sso.example.com'],
    ['https://sso.example.com', 'sso.example.com:8443'],
    ['https://sso.example.com\\@evil.example', 'evil.example'],
    ['https://sso.example.com', 'http://sso.example.com'],
    ['https://ѕso.example.com', 'sso.example.com'],
  ])('%s is not on the list %s', (url, entry) => {
    expect(verdict({ 'auth-url': url }, { authHosts: [entry] })).toContain(
      `expected a host that the operator allows: ${entry}`,
    );
  });

  it('the default need not be on the list', () => {
    const defaults = { authUrl: 'https://login.example.com' };
    expect(verdict({ 'auth-url': 'https://login.example.com' }, { authHosts: [] }, defaults)).toBe(
      'injected',
    );
  });
});

describe('an upstream in clear text, whose name a pod could lead elsewhere by hostAliases', () => {
  it.each([
    ['http://api.example.com', 'api.example.com', 'a host that the operator allows: api.example.com'],
    ['http://api.example.com:443', 'api.example.com', 'a host that the operator allows'],
    ['http://api.example.com:8080', 'api.example.com:8080', 'a host that the operator allows'],
    ['http://api.example.com', 'http://api.example.com', 'injected'],
    ['http://api.example.com:8080', 'http://*.example.com:8080', 'injected'],
    ['http://api.example.com:8080', 'http://api.example.com', 'a host that the operator allows'],
  ])('%s by the list %s: %s', (upstream, entry, outcome) => {
    expect(verdict({ upstream }, { upstreamHosts: [entry] })).toContain(outcome);
  });
});

describe('a pod whose containers see the processes of the sidecar, and so its files', () => {
  it.each(['shareProcessNamespace', 'hostPID'])('%s is refused where anything is limited', (field) => {
    expect(verdict({}, { authHosts: ['sso.example.com'] }, {}, { [field]: true })).toContain(
      `spec.${field}: "true": expected false, where the operator limits annotations`,
    );
    expect(verdict({}, {}, {}, { [field]: true })).toBe('injected');
  });
});

it('hosts that get access tokens have a list of their own', () => {
  const allowed = { upstreamHosts: ['api.example.com'] };
  expect(verdict({ 'auth-url': 'https://any.example' }, allowed)).toBe('injected');
  expect(verdict({ upstream: 'https://evil.example' }, allowed)).toContain(
    'token-sidecar.dev/upstream: "https://evil.example": expected a host that the operator allows: api.example.com',
  );
});

describe('images that read the Secret', () => {
  it.each([
    ['ghcr.io/acme/sidecar:1', 'ghcr.io/acme/sidecar'],
    [`ghcr.io/acme/sidecar:1@sha256:${'0'.repeat(64)}`, 'ghcr.io/acme/sidecar'],
    ['registry:5000/acme/sidecar', 'registry:5000/acme/'],
    [DEFAULTS.image, 'nothing.example/else'],
  ])('%s may run by the list %s', (image, entry) => {
    expect(verdict({ image }, { images: [entry] })).toBe('injected');
  });

  it.each([
    ['evil.example/sidecar:1', 'ghcr.io/acme/'],
    ['ghcr.io/acme-evil/sidecar:1', 'ghcr.io/acme'],
    ['ghcr.io/acme/sidecar-evil:1', 'ghcr.io/acme/sidecar'],
    ['ghcr.io/acme/../evil/sidecar:1', 'ghcr.io/acme/'],
    ['sidecar:1', 'ghcr.io/acme/'],
  ])('%s may not by the list %s', (image, entry) => {
    expect(verdict({ image }, { images: [entry] })).toContain(`an image that the operator allows: ${entry}`);
  });
});

it.each([{ authHosts: ['sso.example.com'] }, { upstreamHosts: ['api.example.com'] }])(
  'where hosts are limited and images are not, no image but the default runs: %j',
  (allowed) => {
    expect(verdict({ image: 'evil.example/sidecar:1' }, allowed)).toContain(
      'an image that the operator allows: none',
    );
    expect(verdict({ image: DEFAULTS.image }, allowed)).toBe('injected');
  },
);

describe('a ConfigMap, which may name any host', () => {
  it.each([
    ['nothing is limited', {}, 'injected'],
    ['only images are', { images: ['x/'] }, 'injected'],
    ['it is on the list', { authHosts: ['a'], configMaps: ['routes'] }, 'injected'],
    ['all are', { authHosts: [], configMaps: ['*'] }, 'injected'],
  ])('is taken where %s', (_, allowed, outcome) => {
    const annotations = { 'config-map': 'routes' };
    const ours = {
      authUrl: ASKING['token-sidecar.dev/auth-url'],
      upstream: ASKING['token-sidecar.dev/upstream'],
    };
    expect(verdict(annotations, allowed, ours)).toBe(outcome);
  });

  it.each([
    ['hosts of providers are limited', { authHosts: ['sso.example.com'] }],
    ['hosts of upstreams are limited', { upstreamHosts: ['api.example.com'] }],
    ['another is on the list', { configMaps: ['others'] }],
  ])('is refused where %s', (_, allowed) => {
    expect(verdict({ 'config-map': 'routes' }, allowed)).toContain('a ConfigMap that the operator allows');
  });
});

describe('an entry of a list of hosts', () => {
  const longest = `${'a'.repeat(296)}:443`;
  it.each<[string, string]>([
    ['sso.example.com', 'sso.example.com'],
    ['SSO.Example.com:8443', 'sso.example.com:8443'],
    ['*.example.com', '*.example.com'],
    ['*.example.com:1', '*.example.com:1'],
    ['a', 'a'],
    ['_sso-1.b_c', '_sso-1.b_c'],
    ['10.0.0.1:65535', '10.0.0.1:65535'],
    [longest, longest],
  ])('%s is understood', (text, host) => {
    expect(allowedHost.parse(text)).toBe(host);
  });

  it.each([
    '',
    '*',
    '*.',
    '*sso.example.com',
    'sso.*.com',
    '.example.com',
    'example.com.',
    '-a',
    'a-',
    'a:',
    'a:x',
    'a:123456',
    'a:1:2',
    'https://a',
    'a/b',
    ' a',
    'a ',
    'a b',
    `a${longest}`,
  ])('%j is none', (text) => {
    expect(allowedHost.parse(text)).toBeUndefined();
  });
});

describe('an entry of a list of images', () => {
  it.each(['ghcr.io/token-sidecar/', 'registry:5000/team/app', 'app', 'a'.repeat(501)])(
    '%s is understood',
    (text) => {
      expect(allowedImage.parse(text)).toBe(text);
    },
  );

  it.each(['', '/app', 'app:1.0', 'registry:5000/app:1.0', 'app@sha256:0', 'a b', 'a'.repeat(502)])(
    '%j is none',
    (text) => {
      expect(allowedImage.parse(text)).toBeUndefined();
    },
  );
});
