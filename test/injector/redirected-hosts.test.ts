/** Pods whose connections the system sends to the sidecar: `token-sidecar.dev/hosts` with the mode `redirect`. */

import { describe, expect, it } from 'vitest';
import { type InjectionDefaults, readInjectionDefaults } from '../../src/injector/injection-defaults.ts';
import type { Cluster } from '../../src/injector/pod/cluster.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import type { Container, Namespace, Pod, PodSpec } from '../../src/injector/pod/pod.ts';
import { capturedPorts } from '../../src/injector/pod/redirect-mode.ts';
import type { Problem } from '../../src/platform/problems.ts';
import { DEFAULTS as USUAL } from './defaults.ts';
import { patched } from './patched.ts';

/** Of an operator who allows it. */
const DEFAULTS: InjectionDefaults = { ...USUAL, allowedModes: ['redirect'] };

const ENFORCE = 'pod-security.kubernetes.io/enforce';

const ASKING = {
  'token-sidecar.dev/inject': 'true',
  'token-sidecar.dev/secret': 'shop',
  'token-sidecar.dev/auth-url': 'https://sso.example.com',
  'token-sidecar.dev/mode': 'redirect',
  'token-sidecar.dev/hosts': 'api.example.com, *.pay.example.com:8443',
};

interface Asked {
  readonly spec?: PodSpec;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly namespace?: Namespace;
  readonly cluster?: Cluster;
  readonly defaults?: Partial<InjectionDefaults>;
}

function ask({
  spec = {},
  annotations,
  namespace = { name: 'team' },
  cluster = {},
  defaults = {},
}: Asked = {}) {
  const pod: Pod = {
    metadata: { annotations: { ...ASKING, ...annotations } },
    spec: { containers: [{ name: 'app' }], ...spec },
  };
  return { pod, injection: inject(pod, namespace, { ...DEFAULTS, ...defaults }, cluster) };
}

function injected(asked?: Asked) {
  const { pod, injection } = ask(asked);
  if (injection.result !== 'injected') throw new Error(JSON.stringify(injection));
  return patched(pod, injection.patch);
}

function refusal(asked: Asked): string {
  const { injection } = ask(asked);
  return injection.result === 'rejected' ? injection.message : injection.result;
}

describe('a pod whose connections are redirected', () => {
  it('has the sidecar first, then what redirects to it, which alone has the capability', () => {
    const { spec } = injected({ spec: { initContainers: [{ name: 'migrate' }] } });
    expect(spec.initContainers.map(({ name }) => name)).toEqual([
      'token-sidecar',
      'token-sidecar-redirect',
      'migrate',
    ]);
    expect(spec.initContainers[1]).toMatchObject({
      image: DEFAULTS.image,
      args: ['redirect', '--ports', '80,443,8443', '--exempt-user', '15083'],
      securityContext: {
        runAsUser: 0,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
      },
    });
    // A user of its own: the image's is that of many images of apps as well.
    expect(spec.initContainers[0]).toMatchObject({
      securityContext: { runAsUser: 15_083, runAsGroup: 15_083, capabilities: { drop: ['ALL'] } },
    });
  });

  it('has its connections changed by the operator’s image, whatever image the annotation names', () => {
    const { spec } = injected({ annotations: { 'token-sidecar.dev/image': 'mirror.example/sidecar:1' } });
    expect(spec.initContainers.map((container) => (container as { image?: string }).image)).toEqual([
      'mirror.example/sidecar:1',
      USUAL.image,
    ]);
  });

  it('is not told of users unless the operator chose the sidecar’s, which an image may have as well', () => {
    const containers = [{ name: 'app' }, { name: 'other', securityContext: { runAsUser: 2000 } }];
    expect(ask({ spec: { containers } }).injection).toMatchObject({ warnings: [] });
    const defaults = { runAsUser: 1000 };
    expect(ask({ spec: { containers }, defaults }).injection).toMatchObject({
      warnings: [
        "container app has no runAsUser: if its image has the user 1000, the sidecar's, its connections are not redirected",
      ],
    });
    const securityContext = { runAsUser: 2000 };
    expect(ask({ spec: { containers, securityContext }, defaults }).injection).toMatchObject({
      warnings: [],
    });
  });

  it('has a sidecar that may ask the kernel, and apps that trust it and know of no proxy', () => {
    const { spec } = injected();
    const env = (at: 'containers' | 'initContainers') =>
      Object.fromEntries((spec[at][0]?.env ?? []).map(({ name, value }) => [name, value]));
    expect(env('initContainers')).toMatchObject({
      TOKEN_SIDECAR_REDIRECT_HOSTS: ASKING['token-sidecar.dev/hosts'],
      NODE_OPTIONS: '',
    });
    expect(env('initContainers')).not.toHaveProperty('TOKEN_SIDECAR_HOSTS');
    expect(env('containers')).toHaveProperty('SSL_CERT_FILE');
    expect(env('containers')).not.toHaveProperty('HTTPS_PROXY');
  });

  it('is not changed by a second pass', () => {
    expect(inject(injected() as Pod, { name: 'team' }, DEFAULTS, {}).result).toBe('skipped');
  });

  it.each([
    ['api.example.com', '80,443'],
    ['api.example.com:8443, b.example.com:443', '80,443,8443'],
  ])('with hosts %s has the ports %s captured', (hosts, ports) => {
    expect(capturedPorts(hosts)).toBe(ports);
  });

  it('gets no other switch of Node in other modes', () => {
    const allowedModes = ['forward'] as const;
    const { spec } = injected({
      annotations: { 'token-sidecar.dev/mode': 'forward' },
      defaults: { allowedModes },
    });
    expect(spec.initContainers.map(({ name }) => name)).toEqual(['token-sidecar']);
    expect((spec.initContainers[0]?.env ?? []).map(({ name }) => name)).not.toContain('NODE_OPTIONS');
  });
});

describe('what modes pods may have', () => {
  const refusedOf = (mode: string, defaults: InjectionDefaults) =>
    JSON.stringify(
      inject(
        {
          metadata: { annotations: { ...ASKING, 'token-sidecar.dev/mode': mode } },
          spec: { containers: [{ name: 'app' }] },
        },
        { name: 'team' },
        defaults,
        {},
      ),
    ).includes('a mode that the operator allows');

  it('is all but redirect, which makes a root container, unless the operator lists it', () => {
    const annotations = { ...ASKING, 'token-sidecar.dev/hosts': 'api.example.com' };
    const pod: Pod = { metadata: { annotations }, spec: { containers: [{ name: 'app' }] } };
    expect(inject(pod, { name: 'team' }, USUAL, {})).toMatchObject({
      result: 'rejected',
      message: expect.stringContaining(
        'token-sidecar.dev/mode: "redirect": expected a mode that the operator allows: reverse, forward, hosts',
      ),
    });
    for (const mode of ['reverse', 'forward', 'hosts']) expect(refusedOf(mode, USUAL)).toBe(false);
  });

  it('is what the list has, and the default', () => {
    const defaults: InjectionDefaults = { ...USUAL, mode: 'forward', allowedModes: ['redirect'] };
    expect(['reverse', 'forward', 'hosts', 'redirect'].filter((mode) => refusedOf(mode, defaults))).toEqual([
      'reverse',
      'hosts',
    ]);
  });

  it('is read from the operator’s setting', () => {
    const read = (text: string) => {
      const problems: Problem[] = [];
      const given = { 'allowed-modes': { key: '--allowed-modes', text } };
      return { allowedModes: readInjectionDefaults(given, problems).allowedModes, problems };
    };
    expect(read('hosts, redirect')).toEqual({ allowedModes: ['hosts', 'redirect'], problems: [] });
    expect(read('hosts,sideways').problems).toMatchObject([
      { key: '--allowed-modes', value: 'hosts,sideways' },
    ]);
  });
});

describe('a pod whose connections cannot be redirected is refused, with the reason', () => {
  it.each(['baseline', 'restricted'])('where its namespace enforces the standard %s', (standard) => {
    const labels = { [ENFORCE]: standard };
    const words = `the namespace team enforces the Pod Security Standard ${standard}`;
    expect(refusal({ namespace: { name: 'team', labels } })).toContain(words);
    const cluster = { namespaceLabels: (name: string) => (name === 'team' ? labels : undefined) };
    expect(refusal({ cluster })).toContain(words);
  });

  it.each([{ [ENFORCE]: 'privileged' }, { 'pod-security.kubernetes.io/warn': 'restricted' }, {}])(
    'but not with the labels %o',
    (labels) => {
      expect(ask({ namespace: { name: 'team', labels } }).injection.result).toBe('injected');
    },
  );

  it.each([
    ['istio-init', 'Istio'],
    ['linkerd-init', 'Linkerd'],
    ['linkerd-network-validator', 'Linkerd'],
  ])('beside %s', (name, mesh) => {
    expect(refusal({ spec: { initContainers: [{ name }] } })).toContain(`no container of ${mesh}`);
  });

  it('beside a mesh that came after the first pass', () => {
    const pod = injected();
    const initContainers = [...pod.spec.initContainers, { name: 'istio-init' }];
    const again = inject(
      { ...pod, spec: { ...pod.spec, initContainers } } as Pod,
      { name: 'team' },
      DEFAULTS,
      {},
    );
    expect(again).toMatchObject({
      result: 'rejected',
      message: expect.stringContaining('no container of Istio'),
    });
  });

  it.each<[string, Container]>([
    ['another user than the sidecar', { name: 'late', securityContext: { runAsUser: 15_083 } }],
    ['a port other than 15083', { name: 'late', ports: [{ containerPort: 15_083 }] }],
    [
      'another path',
      { name: 'late', volumeMounts: [{ name: 'own', mountPath: '/var/run/token-sidecar/trust' }] },
    ],
  ])('with a container that came after the first pass and would have %s', (expected, late) => {
    const pod = injected();
    const containers = [...pod.spec.containers, late];
    const again = inject(
      { ...pod, spec: { ...pod.spec, containers } } as Pod,
      { name: 'team' },
      DEFAULTS,
      {},
    );
    expect(again).toMatchObject({ result: 'rejected', message: expect.stringContaining(expected) });
  });

  it.each(['initContainers', 'containers'] as const)('with one of %s that has the name already', (list) => {
    const spec = { containers: [{ name: 'app' }], [list]: [{ name: 'token-sidecar-redirect' }] };
    expect(refusal({ spec })).toContain(
      `spec.${list}[0].name: "token-sidecar-redirect": expected another name`,
    );
  });

  it.each<[string, PodSpec]>([
    ['spec.securityContext.runAsUser: "15083"', { securityContext: { runAsUser: 15_083 } }],
    [
      'spec.containers[0].securityContext.runAsUser: "15083"',
      { containers: [{ name: 'app', securityContext: { runAsUser: 15_083 } }] },
    ],
  ])('with an app of the sidecar’s user: %s', (key, spec) => {
    expect(refusal({ spec })).toContain(`${key}: expected another user than the sidecar's`);
  });

  it('but not where every container has another', () => {
    const containers = [{ name: 'app', securityContext: { runAsUser: 65_532 } }];
    const spec = { securityContext: { runAsUser: 15_083 }, containers };
    expect(ask({ spec }).injection.result).toBe('injected');
  });

  it.each<[string, Asked]>([
    ['a port that is taken', { spec: { containers: [{ name: 'app', ports: [{ containerPort: 15_083 }] }] } }],
    ['a platform that assigns users', { defaults: { runAsUser: 'none' } }],
    ['a sidecar that is not native', { annotations: { 'token-sidecar.dev/native-sidecar': 'false' } }],
  ])('with %s', (_, asked) => {
    expect(ask(asked).injection.result).toBe('rejected');
  });

  it('without hosts', () => {
    const { 'token-sidecar.dev/hosts': _, ...annotations } = ASKING;
    const pod: Pod = { metadata: { annotations }, spec: { containers: [{ name: 'app' }] } };
    expect(inject(pod, { name: 'team' }, DEFAULTS, {})).toMatchObject({
      message: expect.stringContaining('because the mode is redirect'),
    });
  });
});
