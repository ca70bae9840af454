/** Pods whose hosts lead to the sidecar by their hosts file: `token-sidecar.dev/mode: hosts`. */

import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import type { InjectionDefaults } from '../../src/injector/pod/injection-defaults.ts';
import type { Pod, PodSpec } from '../../src/injector/pod/pod.ts';
import { DEFAULTS } from './defaults.ts';
import { patched } from './patched.ts';

const ASKING = {
  'token-sidecar.dev/inject': 'true',
  'token-sidecar.dev/secret': 'shop',
  'token-sidecar.dev/auth-url': 'https://sso.example.com',
  'token-sidecar.dev/mode': 'hosts',
  'token-sidecar.dev/hosts': 'api.example.com, pay.example.com:8443',
};
const SYSCTL = { name: 'net.ipv4.ip_unprivileged_port_start', value: '80' };

type Given = Omit<PodSpec, 'containers'> & Partial<Pick<PodSpec, 'containers'>>;

function admitted(
  spec: Given = {},
  annotations: Record<string, string> = {},
  defaults: Partial<InjectionDefaults> = {},
) {
  const pod: Pod = {
    metadata: { annotations: { ...ASKING, ...annotations } },
    spec: { containers: [{ name: 'app' }], ...spec },
  };
  return { pod, injection: inject(pod, { name: 'team' }, { ...DEFAULTS, ...defaults }, {}) };
}

function injected(spec?: Given, annotations?: Record<string, string>, defaults?: Partial<InjectionDefaults>) {
  const { pod, injection } = admitted(spec, annotations, defaults);
  if (injection.result !== 'injected') throw new Error(JSON.stringify(injection));
  return { pod: patched(pod, injection.patch), warnings: injection.warnings };
}

function refusal(spec?: Given, annotations?: Record<string, string>): string {
  const { injection } = admitted(spec, annotations);
  return injection.result === 'rejected' ? injection.message : injection.result;
}

const specOf = (pod: object) => (pod as { spec: Record<string, unknown> }).spec;

describe('a pod of the mode hosts', () => {
  it('finds each host at an address of its own, where the sidecar is told to listen', async () => {
    const { pod } = injected();
    expect(specOf(pod)['hostAliases']).toEqual([
      { ip: '127.0.0.2', hostnames: ['api.example.com'] },
      { ip: '127.0.0.3', hostnames: ['pay.example.com'] },
    ]);
    const env = pod.spec.initContainers[0]?.env ?? [];
    const text = env.find(({ name }) => name === 'TOKEN_SIDECAR_CAPTURE_HOSTS')?.value ?? '';
    expect(env.map(({ name }) => name)).not.toContain('TOKEN_SIDECAR_HOSTS');
    // What the sidecar makes of it.
    const { capture, forwardProxy } = await loadConfig({
      'capture-hosts': { key: 'CAPTURE_HOSTS', text },
      'auth-url': { key: 'AUTH_URL', text: 'https://sso' },
    });
    expect(
      capture?.hosts.map(({ host, address, ports, clearPorts }) => [host, address, ports, clearPorts]),
    ).toEqual([
      ['api.example.com', '127.0.0.2', [443], [80]],
      ['pay.example.com', '127.0.0.3', [8443], []],
    ]);
    expect(forwardProxy).toBeUndefined();
  });

  it('lets the sidecar listen there without a privilege', () => {
    expect(injected().pod.spec.securityContext).toMatchObject({ fsGroup: 65532, sysctls: [SYSCTL] });
    const own = { fsGroup: 1, sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '1' }] };
    expect(injected({ securityContext: own }).pod.spec.securityContext).toEqual({
      ...own,
      sysctls: [...own.sysctls, SYSCTL],
    });
    const kept = { fsGroup: 1, sysctls: [{ ...SYSCTL, value: '0' }] };
    expect(injected({ securityContext: kept }).pod.spec.securityContext).toEqual(kept);
    expect(injected({}, {}, { runAsUser: 'none' }).pod.spec.securityContext).toEqual({ sysctls: [SYSCTL] });
    const high = { 'token-sidecar.dev/hosts': 'api.example.com:8443' };
    expect(injected({}, high).pod.spec.securityContext).not.toHaveProperty('sysctls');
  });

  it('keeps the aliases that it has', () => {
    const own = { ip: '10.0.0.1', hostnames: ['db'] };
    expect(specOf(injected({ hostAliases: [own] }).pod)['hostAliases']).toEqual([
      own,
      expect.anything(),
      expect.anything(),
    ]);
  });

  it('may say itself where its hosts are, in the words of IPv6', () => {
    const own = { ip: '::ffff:127.0.0.2', hostnames: ['api.example.com'] };
    expect(specOf(injected({ hostAliases: [own] }).pod)['hostAliases']).toContainEqual(own);
    const other = { ip: '::ffff:127.0.0.3', hostnames: ['api.example.com'] };
    expect(refusal({ hostAliases: [other] })).toContain('expected a name that is not captured');
  });

  it('is told whom to trust, and of no proxy', () => {
    const env = injected().pod.spec.containers[0]?.env ?? [];
    const names = env.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS', 'JAVA_TOOL_OPTIONS']),
    );
    expect(names.filter((name) => /proxy/i.test(name))).toEqual([]);
    expect(env.find(({ name }) => name === 'JAVA_TOOL_OPTIONS')?.value).not.toContain('proxy');
  });

  it('has nothing to trust where its hosts are captured in clear alone', () => {
    const { pod } = injected({}, { 'token-sidecar.dev/hosts': 'api.example.com:80' });
    expect(pod.spec.containers).toEqual([{ name: 'app' }]);
    expect(pod.spec.volumes.map(({ name }) => name)).not.toContain('token-sidecar-trust');
    const env = pod.spec.initContainers[0]?.env ?? [];
    expect(env.map(({ name }) => name)).not.toContain('TOKEN_SIDECAR_TRUST_DIR');
    expect(inject(pod as Pod, { name: 'team' }, DEFAULTS, {}).result).toBe('skipped');
  });

  it('is not changed by a second pass, and what comes later is served', () => {
    const { pod } = injected();
    expect(inject(pod as Pod, { name: 'team' }, DEFAULTS, {}).result).toBe('skipped');
    const later: Pod = {
      ...pod,
      spec: { ...pod.spec, containers: [...pod.spec.containers, { name: 'later' }] },
    };
    const second = inject(later, { name: 'team' }, DEFAULTS, {});
    if (second.result !== 'injected') throw new Error(second.result);
    expect(patched(later, second.patch).spec.containers[1]).toEqual({
      ...pod.spec.containers[0],
      name: 'later',
    });
  });
});

describe('is refused', () => {
  it.each([
    ['a wildcard', {}, { 'token-sidecar.dev/hosts': 'a.com, *.b.com' }, '"*.b.com": expected exact names'],
    ['a classic sidecar', {}, { 'token-sidecar.dev/native-sidecar': 'false' }, 'expected "true"'],
    [
      'a host with an alias of its own',
      { hostAliases: [{ ip: '10.0.0.1', hostnames: ['API.example.com'] }] },
      {},
      'spec.hostAliases[0].hostnames: "API.example.com"',
    ],
    [
      'a port start above what is needed',
      { securityContext: { sysctls: [{ ...SYSCTL, value: '443' }] } },
      {},
      'expected at most 80',
    ],
    [
      'a server at a captured port',
      { containers: [{ name: 'web', ports: [{ containerPort: 80 }] }] },
      {},
      'spec.containers[0].ports[0].containerPort: "80": expected a port at which no host is captured; the hosts may name theirs, as api.example.com:443',
    ],
  ] as const)('%s', (_, spec, annotations, message) => {
    expect(refusal(spec, annotations)).toContain(message);
  });

  it('a pod that names no hosts', () => {
    const { 'token-sidecar.dev/hosts': _, ...annotations } = ASKING;
    const pod: Pod = { metadata: { annotations }, spec: { containers: [{ name: 'app' }] } };
    const injection = inject(pod, { name: 'team' }, { ...DEFAULTS, upstream: 'https://a' }, {});
    expect(injection).toMatchObject({
      result: 'rejected',
      message: expect.stringContaining('token-sidecar.dev/hosts: expected the hosts'),
    });
  });
});
