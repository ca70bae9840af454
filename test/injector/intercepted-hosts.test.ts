/** Pods whose apps stay as they are: `token-sidecar.dev/hosts` with the mode `forward`. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { InjectionDefaults } from '../../src/injector/injection-defaults.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import type { Container, Pod } from '../../src/injector/pod/pod.ts';
import { TRUST_VARIABLES } from '../../src/platform/trust-variables.ts';
import { DEFAULTS } from './defaults.ts';
import { type PatchedPod, patched } from './patched.ts';

const HOSTS = 'token-sidecar.dev/hosts';
const ASKING = {
  'token-sidecar.dev/inject': 'true',
  'token-sidecar.dev/secret': 'shop',
  'token-sidecar.dev/auth-url': 'https://sso.example.com',
  'token-sidecar.dev/mode': 'forward',
  [HOSTS]: 'api.example.com, *.payments.example.com:8443',
};

function injected(
  containers: readonly Container[] = [{ name: 'app' }],
  annotations: Readonly<Record<string, string>> = ASKING,
  defaults: Partial<InjectionDefaults> = {},
) {
  const pod: Pod = { metadata: { annotations }, spec: { containers } };
  const injection = inject(pod, { name: 'team' }, { ...DEFAULTS, ...defaults }, {});
  if (injection.result !== 'injected') throw new Error(JSON.stringify(injection));
  return { pod: patched(pod, injection.patch), warnings: injection.warnings };
}

const environment = (pod: PatchedPod, at = 0) =>
  Object.fromEntries((pod.spec.containers[at]?.env ?? []).map(({ name, value }) => [name, value]));

const refusal = (
  annotations: Readonly<Record<string, string>>,
  defaults: Partial<InjectionDefaults> = {},
) => {
  const pod: Pod = { metadata: { annotations }, spec: { containers: [{ name: 'app' }] } };
  const injection = inject(pod, { name: 'team' }, { ...DEFAULTS, ...defaults }, {});
  return injection.result === 'rejected' ? injection.message : injection.result;
};

describe('a pod that names hosts', () => {
  it('has a sidecar that intercepts them, and needs no upstream', () => {
    const { pod } = injected([{ name: 'app' }], ASKING, { upstream: 'https://default.example.com' });
    const env = Object.fromEntries(
      (pod.spec.initContainers[0]?.env ?? []).map(({ name, value }) => [name, value]),
    );
    expect(env).toMatchObject({
      TOKEN_SIDECAR_HOSTS: ASKING[HOSTS],
      TOKEN_SIDECAR_TRUST_DIR: '/var/run/token-sidecar/trust',
    });
    expect(env).not.toHaveProperty('TOKEN_SIDECAR_UPSTREAM');
  });

  it('shares a volume in memory, which apps can only read', () => {
    const { pod } = injected();
    expect(pod.spec.volumes).toContainEqual({
      name: 'token-sidecar-trust',
      emptyDir: { medium: 'Memory', sizeLimit: '8Mi' },
    });
    const mount = { name: 'token-sidecar-trust', mountPath: '/var/run/token-sidecar/trust' };
    expect(pod.spec.containers[0]?.volumeMounts).toEqual([{ ...mount, readOnly: true }]);
    expect(pod.spec.initContainers[0]?.volumeMounts).toContainEqual(mount);
  });

  it('has variables for every runtime that name the proxy and the CA', () => {
    const env = environment(injected().pod);
    expect(env).toMatchObject({
      HTTPS_PROXY: 'http://127.0.0.1:15080',
      https_proxy: 'http://127.0.0.1:15080',
      NO_PROXY: 'localhost,127.0.0.1,::1',
      NODE_USE_ENV_PROXY: '1',
      NODE_EXTRA_CA_CERTS: '/var/run/token-sidecar/trust/ca.crt',
      SSL_CERT_FILE: '/var/run/token-sidecar/trust/bundle.pem',
      JAVA_TOOL_OPTIONS: expect.stringContaining(
        '-Djavax.net.ssl.trustStore=/var/run/token-sidecar/trust/truststore.p12',
      ),
    });
    for (const { name } of TRUST_VARIABLES) expect(env).toHaveProperty(name);
  });

  it('is not changed by a second pass, and a container that comes later is served', () => {
    const { pod } = injected();
    const again = inject(pod as Pod, { name: 'team' }, DEFAULTS, {});
    expect(again.result).toBe('skipped');
    const { spec } = pod;
    const later: Pod = { ...pod, spec: { ...spec, containers: [...spec.containers, { name: 'later' }] } };
    const second = inject(later, { name: 'team' }, DEFAULTS, {});
    if (second.result !== 'injected') throw new Error(second.result);
    expect(patched(later, second.patch).spec.containers[1]).toEqual({
      ...pod.spec.containers[0],
      name: 'later',
    });
  });
});

describe('a variable that a container sets itself', () => {
  it('stays, with a warning', () => {
    const own = [{ name: 'SSL_CERT_FILE', value: '/own' }];
    const { pod, warnings } = injected([{ name: 'app', env: own }]);
    expect(environment(pod)['SSL_CERT_FILE']).toBe('/own');
    expect(warnings.join()).toContain('container app sets SSL_CERT_FILE itself and keeps it');
  });

  it('in JAVA_TOOL_OPTIONS is added to', () => {
    const { pod, warnings } = injected([
      { name: 'app', env: [{ name: 'JAVA_TOOL_OPTIONS', value: '-Xmx64m' }] },
    ]);
    expect(environment(pod)['JAVA_TOOL_OPTIONS']).toMatch(
      /^-Xmx64m -Djavax\.net\.ssl\.trustStore=\S+ -Djavax/,
    );
    expect(warnings).toEqual([]);
  });

  it.each([
    [
      'a trust store of its own',
      '-Djavax.net.ssl.trustStore=/own.jks -Dhttps.proxyHost=corp',
      /^-Djavax\S+ -Dhttps.proxyHost=corp -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=15080 -Dhttps.proxyPort=15080$/,
    ],
    ['a variable from elsewhere', undefined, undefined],
  ])('of the JVM stays and is told of: %s', (_, value, expected) => {
    const variable =
      value === undefined ? { name: 'JAVA_TOOL_OPTIONS' } : { name: 'JAVA_TOOL_OPTIONS', value };
    const { pod, warnings } = injected([{ name: 'app', env: [variable] }]);
    const after = environment(pod)['JAVA_TOOL_OPTIONS'];
    if (expected === undefined) expect(after).toBeUndefined();
    else expect(after).toMatch(expected);
    expect(warnings.join()).toContain('a JVM in it will not trust the sidecar');
  });

  it('by envFrom is warned of', () => {
    const { warnings } = injected([{ name: 'app', envFrom: [{ configMapRef: { name: 'settings' } }] }]);
    expect(warnings.join()).toContain('container app has envFrom');
  });
});

describe('hosts are refused', () => {
  it.each([
    '',
    '127.0.0.1',
    '[::1]',
    'a.com:0',
    'a.com:65536',
    'https://a.com',
    '*',
    '*.',
    'a..com',
    'a.com,',
    'a.com b.com',
    '*.*.a.com',
    `${'a'.repeat(64)}.com`,
  ])('that are none: %j', (hosts) => {
    expect(refusal({ ...ASKING, [HOSTS]: hosts })).toContain(`${HOSTS}: `);
  });

  it('in another mode, beside a ConfigMap, and without a native sidecar', () => {
    const message = refusal({
      ...ASKING,
      'token-sidecar.dev/mode': 'reverse',
      'token-sidecar.dev/config-map': 'routes',
      'token-sidecar.dev/native-sidecar': 'false',
    });
    expect(message).toContain('token-sidecar.dev/mode: "reverse": expected forward');
    expect(message).toContain('expected nothing beside token-sidecar.dev/config-map');
    expect(message).toContain('token-sidecar.dev/native-sidecar: "false": expected "true"');
  });

  it('that are invalid, without a hint about what the operator allows', () => {
    const allowed = { upstreamHosts: ['api.example.com'] };
    const message = refusal({ ...ASKING, [HOSTS]: 'not a host!' }, { allowed });
    expect(message).toContain('token-sidecar.dev/hosts: "not a host!"');
    expect(message).not.toContain('hosts that the operator allows');
  });

  it('with a port other than 443 are judged by their port', () => {
    const allowed = { upstreamHosts: ['api.example.com'] };
    expect(refusal({ ...ASKING, [HOSTS]: 'api.example.com' }, { allowed })).toBe('injected');
    expect(refusal({ ...ASKING, [HOSTS]: 'other.example.com' }, { allowed })).toContain(
      '"other.example.com:443": expected hosts that the operator allows',
    );
  });

  it('that the operator does not allow', () => {
    const allowed = { upstreamHosts: ['api.example.com', '*.payments.example.com'] };
    expect(refusal(ASKING, { allowed })).toContain(
      '"*.payments.example.com:8443": expected hosts that the operator allows',
    );
    expect(refusal({ ...ASKING, [HOSTS]: 'api.example.com, *.eu.payments.example.com' }, { allowed })).toBe(
      'injected',
    );
    expect(refusal({ ...ASKING, [HOSTS]: '*.example.com' }, { allowed })).toContain('"*.example.com:443"');
  });
});

it('the table of variables in the docs is that of the code', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/reference/interception.md'), 'utf8');
  for (const { name, effect, servedBy } of TRUST_VARIABLES) {
    const file = effect === 'adds' ? 'ca.crt' : 'bundle.pem';
    expect(page).toContain(`| \`${name}\` | \`${file}\` | ${servedBy} |`);
  }
});
