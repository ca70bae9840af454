/** What the sidecar of a pod runs by: annotations, and the operator's defaults where they say nothing. */

import { describe, expect, it } from 'vitest';
import type { InjectionDefaults } from '../../src/injector/injection-defaults.ts';
import { grantValue, imageReference, objectName } from '../../src/injector/pod/annotations.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import type { Pod } from '../../src/injector/pod/pod.ts';
import { ASKING, DEFAULTS } from './defaults.ts';
import { patched } from './patched.ts';

const INJECT_ALONE = { 'token-sidecar.dev/inject': 'true' };
const WHOLE = { secret: 's', authUrl: 'https://sso.default', upstream: 'https://api.default' };

function sidecar(annotations: Readonly<Record<string, string>>, defaults: Partial<InjectionDefaults> = {}) {
  const pod: Pod = { metadata: { annotations }, spec: { containers: [{ name: 'app' }] } };
  const injection = inject(pod, { name: 'team' }, { ...DEFAULTS, ...defaults }, {});
  if (injection.result !== 'injected') return JSON.stringify(injection);
  const [container] = patched(pod, injection.patch).spec.initContainers;
  return {
    resources: container?.resources,
    env: Object.fromEntries(
      (container?.env ?? []).map(({ name, value }) => [name.slice('TOKEN_SIDECAR_'.length), value]),
    ),
  };
}

it('without annotations it runs by the defaults', () => {
  expect(sidecar(INJECT_ALONE, { ...WHOLE, scope: 'read', audience: 'api' })).toMatchObject({
    env: {
      AUTH_URL: 'https://sso.default',
      UPSTREAM: 'https://api.default',
      REALM: 'dx',
      SCOPE: 'read',
      AUDIENCE: 'api',
      LOG_LEVEL: 'info',
    },
  });
});

it.each(['secret', 'authUrl', 'upstream'] as const)(
  'a pod that says nothing needs a default for %s',
  (missing) => {
    const { [missing]: _, ...defaults } = WHOLE;
    const key = { secret: 'secret', authUrl: 'auth-url', upstream: 'upstream' }[missing];
    expect(sidecar(INJECT_ALONE, defaults)).toContain(`token-sidecar.dev/${key}: expected the `);
    expect(sidecar({ ...INJECT_ALONE, 'token-sidecar.dev/config-map': 'routes' }, defaults)).toEqual(
      missing === 'secret'
        ? expect.stringContaining('token-sidecar.dev/secret: expected')
        : expect.anything(),
    );
  },
);

it('an annotation that is wrong is named once, and not called missing', () => {
  const annotations = {
    'token-sidecar.dev/secret': 'No Name',
    'token-sidecar.dev/auth-url': 'no url',
    'token-sidecar.dev/upstream': 'no url',
  };
  const message = sidecar({ ...INJECT_ALONE, ...annotations });
  for (const key of Object.keys(annotations)) expect(message.toString().split(`${key}: `)).toHaveLength(2);
});

it('only a clear-text provider that the operator allows is passed on as intended', () => {
  const insecure = { allowInsecureTokenUrl: true };
  const clear = { ...ASKING, 'token-sidecar.dev/auth-url': 'http://sso.example.com' };
  expect(sidecar(clear, insecure)).toMatchObject({ env: { ALLOW_INSECURE_TOKEN_URL: 'true' } });
  expect(sidecar(ASKING, insecure)).not.toHaveProperty('env.ALLOW_INSECURE_TOKEN_URL');
  const { 'token-sidecar.dev/auth-url': _, 'token-sidecar.dev/upstream': __, ...rest } = ASKING;
  const fromFile = sidecar({ ...rest, 'token-sidecar.dev/config-map': 'routes' }, insecure);
  expect(fromFile).not.toHaveProperty('env.ALLOW_INSECURE_TOKEN_URL');
});

describe('proof of possession', () => {
  const PROOF = 'token-sidecar.dev/proof-of-possession';

  it('is the one of the annotation, and unset without one', () => {
    expect(sidecar({ ...ASKING, [PROOF]: 'dpop' })).toMatchObject({ env: { PROOF_OF_POSSESSION: 'dpop' } });
    expect(sidecar(ASKING)).not.toHaveProperty('env.PROOF_OF_POSSESSION');
  });

  it.each(['DPoP', 'mtls', ''])('of %j is refused with its place', (value) => {
    expect(sidecar({ ...ASKING, [PROOF]: value })).toMatch(
      /proof-of-possession: [^;]*expected one of none, dpop/,
    );
  });
});

describe('the protocol to the upstream', () => {
  const PROTOCOL = 'token-sidecar.dev/protocol';

  it('is the one of the annotation, and unset without one', () => {
    expect(sidecar({ ...ASKING, [PROTOCOL]: 'h2' })).toMatchObject({ env: { PROTOCOL: 'h2' } });
    expect(sidecar({ ...ASKING })).not.toHaveProperty('env.PROTOCOL');
  });

  it.each([
    ['h3', '\\"h3\\": expected one of auto, http1, h2, h2c'],
    ['h2c', '\\"h2c\\": expected auto, http1 or h2, as the upstream is an https URL'],
  ])('is refused where it cannot be: %s', (protocol, expected) => {
    expect(sidecar({ ...ASKING, [PROTOCOL]: protocol })).toContain(`${PROTOCOL}: ${expected}`);
  });

  it('is judged by the default upstream, too', () => {
    const { 'token-sidecar.dev/upstream': _, ...rest } = ASKING;
    const annotations = { ...rest, [PROTOCOL]: 'h2' };
    expect(sidecar(annotations, { upstream: 'http://127.0.0.1:80' })).toContain(
      'expected auto, http1 or h2c',
    );
    expect(sidecar(annotations, { upstream: 'https://api' })).toMatchObject({ env: { PROTOCOL: 'h2' } });
  });
});

describe('resources', () => {
  it.each([
    ['a limit below the default request lowers the request', { 'memory-limit': '32Mi' }, '32Mi', '32Mi'],
    ['a request above the default limit raises the limit', { 'memory-request': '1Gi' }, '1Gi', '1Gi'],
    ['a request within the default limit stays alone', { 'memory-request': '64Mi' }, '64Mi', '128Mi'],
    ['both are taken as they are', { 'memory-request': '1Mi', 'memory-limit': '1Mi' }, '1Mi', '1Mi'],
    ['nothing is the default', {}, '48Mi', '128Mi'],
  ])('%s', (_, given, request, limit) => {
    const annotations = Object.entries(given).map(([name, value]) => [`token-sidecar.dev/${name}`, value]);
    expect(sidecar({ ...ASKING, ...Object.fromEntries(annotations) })).toMatchObject({
      resources: { requests: { cpu: '10m', memory: request }, limits: { memory: limit } },
    });
  });

  it('without a value are left out', () => {
    expect(sidecar(ASKING, { resources: {} })).toMatchObject({ resources: {} });
    expect(sidecar(ASKING, { resources: { cpuLimit: '1' } })).toMatchObject({
      resources: { limits: { cpu: '1' } },
    });
  });
});

describe('the operator’s lists', () => {
  const { 'token-sidecar.dev/upstream': _, ...fromFile } = ASKING;
  it.each([
    [
      'a file that says the upstream',
      { ...fromFile, 'token-sidecar.dev/config-map': 'routes' },
      { allowed: { upstreamHosts: [], configMaps: ['*'] }, upstream: 'https://api.default' },
    ],
    [
      'the default upstream, named',
      ASKING,
      { allowed: { upstreamHosts: [] }, upstream: 'https://api.example.com' },
    ],
    ['no ConfigMap at all', ASKING, { allowed: { configMaps: [] } }],
  ])('allow %s', (_, annotations, defaults) => {
    expect(sidecar(annotations, defaults)).toHaveProperty('env');
  });
});

describe('the name of an object', () => {
  it.each(['a', 'a1', 'a-b', 'a--b', '1.2', 'a-b.c-d.e1', 'a.b1c', `${'a'.repeat(253)}`])(
    'may be %s',
    (text) => {
      expect(objectName.parse(text)).toBe(text);
    },
  );

  it.each(['', 'A', 'a_b', '-a', 'a-', '.a', 'a.', 'a..b', 'a.-b', 'a.b-', 'a.b/c', 'a b', 'a'.repeat(254)])(
    'may not be %j',
    (text) => {
      expect(objectName.parse(text)).toBeUndefined();
    },
  );
});

it.each([
  ['ghcr.io/token-sidecar/token-sidecar:0.1.0', true],
  [`r:5000/a_b-c@sha256:${'0'.repeat(64)}`, true],
  ['a', true],
  ['a'.repeat(1001), true],
  ['a'.repeat(1002), false],
  ['', false],
  ['/a', false],
  ['a b', false],
  ['a\n', false],
])('the image %j is understood: %s', (text, is) => {
  expect(imageReference.parse(text)).toBe(is ? text : undefined);
});

it.each([
  ['read write', true],
  [' é', true],
  ['', false],
  [' ', false],
  ['a\u0000b', false],
  ['a\u001f', false],
  ['\ta', false],
])('%j may be part of a grant: %s', (text, is) => {
  expect(grantValue.parse(text)).toBe(is ? text : undefined);
});
