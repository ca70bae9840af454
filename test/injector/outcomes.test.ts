import { describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/injector/pod/cluster.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import type { Namespace, Pod, PodSpec } from '../../src/injector/pod/pod.ts';
import { ASKING, DEFAULTS } from './defaults.ts';
import { type PatchedContainer, type PatchedPod, patched } from './patched.ts';

const APP = { name: 'app', image: 'registry.example.com/shop:1' };

function pod(spec: Partial<PodSpec> = {}, annotations: Readonly<Record<string, string>> = {}): Pod {
  return {
    metadata: { name: 'shop', annotations: { ...ASKING, ...annotations } },
    spec: { containers: [APP], ...spec },
  };
}

function outcomeOf(subject: Pod, { namespace = { name: 'default' }, cluster = {} }: Around = {}) {
  return inject(subject, namespace, DEFAULTS, cluster);
}

interface Around {
  readonly namespace?: Namespace;
  readonly cluster?: Cluster;
}

describe('skipped, and left as it is', () => {
  const cases: Readonly<Record<string, readonly [Pod, string, Around?]>> = {
    'a pod that does not ask': [{ metadata: {}, spec: { containers: [APP] } }, 'not_requested'],
    'a pod without metadata': [{ spec: { containers: [APP] } }, 'not_requested'],
    'a pod that asks not to': [pod({}, { 'token-sidecar.dev/inject': 'false' }), 'not_requested'],
    'a pod of a system namespace': [pod(), 'namespace_excluded', { namespace: { name: 'kube-system' } }],
    'a pod of a namespace that is switched off': [
      pod(),
      'namespace_excluded',
      { namespace: { name: 'default', labels: { 'token-sidecar.dev/injection': 'disabled' } } },
    ],
    'a mirror pod, which is the kubelet’s': [pod({}, { 'kubernetes.io/config.mirror': 'x' }), 'mirror_pod'],
    'a pod that has been injected': [
      pod(
        { initContainers: [{ name: 'token-sidecar', restartPolicy: 'Always' }] },
        { 'token-sidecar.dev/status': 'injected' },
      ),
      'already_injected',
    ],
    'a pod whose sidecar was written by hand': [
      pod({ containers: [APP, { name: 'token-sidecar' }] }),
      'container_exists',
    ],
  };
  it.each(Object.entries(cases))('%s', (_, [subject, reason, around]) => {
    expect(outcomeOf(subject, around)).toMatchObject({ result: 'skipped', reason });
  });

  it('warns of a pod that claims to be injected and is not', () => {
    const claims = pod({}, { 'token-sidecar.dev/status': 'injected' });
    expect(outcomeOf(claims)).toMatchObject({
      reason: 'already_injected',
      warnings: [expect.stringContaining('there is no container of its name')],
    });
  });
});

describe('refused, with the key and what would be right', () => {
  const cases: Readonly<Record<string, readonly [Pod, string, Around?]>> = {
    'the network of the node': [pod({ hostNetwork: true }), 'spec.hostNetwork: "true": expected false'],
    'a Windows pod, by its os': [pod({ os: { name: 'windows' } }), 'spec.os.name: "windows": expected linux'],
    'a Windows pod, by its selector': [
      pod({ nodeSelector: { 'kubernetes.io/os': 'windows' } }),
      'spec.nodeSelector["kubernetes.io/os"]: "windows": expected linux',
    ],
    'a volume with a name of ours': [
      pod({ volumes: [{ name: 'data' }, { name: 'token-sidecar-credentials' }] }),
      'spec.volumes[1].name: "token-sidecar-credentials"',
    ],
    'the port of the proxy': [
      pod({ containers: [{ ...APP, ports: [{ containerPort: 80 }, { containerPort: 15080 }] }] }),
      'spec.containers[0].ports[1].containerPort: "15080"',
    ],
    'the port of the probes, in an init container': [
      pod({ initContainers: [{ name: 'init', ports: [{ containerPort: 15081 }] }] }),
      'spec.initContainers[0].ports[0].containerPort: "15081"',
    ],
    'the name of our port': [
      pod({ containers: [{ ...APP, ports: [{ name: 'token-admin', containerPort: 80 }] }] }),
      'spec.containers[0].ports[0].name: "token-admin"',
    ],
    'a container that mounts the sidecar’s Secret': [
      pod({ containers: [{ ...APP, volumeMounts: [{ name: 'token-sidecar-credentials' }] }] }),
      'spec.containers[0].volumeMounts[0].name: "token-sidecar-credentials"',
    ],
    'more containers than any pod has': [
      pod({ containers: Array.from({ length: 201 }, () => APP) }),
      'spec.containers: "201": expected at most 200 of them',
    ],
    'no container': [pod({ containers: [] }), 'spec.containers: expected at least one container'],
    'a word that is neither yes nor no': [
      pod({}, { 'token-sidecar.dev/inject': 'yes' }),
      'token-sidecar.dev/inject: "yes": expected "true" or "false"',
    ],
    'a mistyped annotation': [
      pod({}, { 'token-sidecar.dev/upsteam': 'https://x' }),
      'token-sidecar.dev/upsteam: expected an annotation that there is; did you mean "token-sidecar.dev/upstream"?',
    ],
    'a status that is not ours': [
      pod({}, { 'token-sidecar.dev/status': 'done' }),
      'token-sidecar.dev/status: "done": expected nothing',
    ],
    'a native sidecar on a cluster without them': [
      pod({}, { 'token-sidecar.dev/native-sidecar': 'true' }),
      'token-sidecar.dev/native-sidecar: "true": expected "false", because the cluster is Kubernetes 1.28',
      { cluster: { version: { major: 1, minor: 28 } } },
    ],
    'forward mode without a ConfigMap': [
      pod({}, { 'token-sidecar.dev/mode': 'forward' }),
      'token-sidecar.dev/config-map: expected the name of a ConfigMap whose forwardProxy',
    ],
    'a provider in clear': [
      pod({}, { 'token-sidecar.dev/auth-url': 'http://sso.example.com' }),
      'token-sidecar.dev/auth-url: "http://sso.example.com": expected https',
    ],
    'more requested than the limit': [
      pod({}, { 'token-sidecar.dev/memory-request': '1Gi', 'token-sidecar.dev/memory-limit': '64Mi' }),
      'token-sidecar.dev/memory-request: "1Gi": expected at most the limit, 64Mi',
    ],
  };
  it.each(Object.entries(cases))('%s', (_, [subject, message, around]) => {
    expect(outcomeOf(subject, around)).toMatchObject({
      result: 'rejected',
      message: expect.stringContaining(message),
    });
  });

  it('names every problem in one message', () => {
    const annotations = {
      'token-sidecar.dev/inject': 'true',
      'token-sidecar.dev/secret': 'Not_A_Name',
      'token-sidecar.dev/auth-url': 'ftp://sso',
      'token-sidecar.dev/mode': 'sideways',
      'token-sidecar.dev/native-sidecar': 'maybe',
      'token-sidecar.dev/cpu-request': 'lots',
      'token-sidecar.dev/image': 'no image',
      'token-sidecar.dev/log-level': 'loud',
      'token-sidecar.dev/scope': ' ',
      'token-sidecar.dev/colour': 'red',
    };
    const subject = { metadata: { annotations }, spec: { containers: [APP], hostNetwork: true } };
    const outcome = outcomeOf(subject);
    for (const key of [
      ...Object.keys(annotations).slice(1),
      'token-sidecar.dev/upstream',
      'spec.hostNetwork',
    ]) {
      expect(outcome).toMatchObject({ message: expect.stringContaining(`${key}: `) });
    }
  });
});

describe('injected', () => {
  it.each([
    [{}, 'native'],
    [{ version: { major: 1, minor: 29 } }, 'native'],
    [{ version: { major: 2, minor: 0 } }, 'native'],
    [{ version: { major: 1, minor: 28 } }, 'classic'],
  ] as const)('on a cluster %j: %s', (cluster, reason) => {
    expect(outcomeOf(pod(), { cluster })).toMatchObject({ result: 'injected', reason });
  });

  function injected(
    subject: Pod,
    around: Around = {},
  ): { readonly pod: PatchedPod; readonly warnings: readonly string[] } {
    const outcome = outcomeOf(subject, around);
    if (outcome.result !== 'injected') throw new Error(JSON.stringify(outcome));
    return { pod: patched(subject, outcome.patch), warnings: outcome.warnings };
  }

  it('keeps a group of the pod, and takes its own where there is none', () => {
    expect(injected(pod({ securityContext: { fsGroup: 2000 } })).pod.spec.securityContext).toEqual({
      fsGroup: 2000,
    });
    expect(
      injected(pod({ securityContext: { fsGroupChangePolicy: 'Always' } })).pod.spec.securityContext,
    ).toEqual({
      fsGroup: 65532,
      fsGroupChangePolicy: 'Always',
    });
  });

  it('leaves the scrape annotations of a pod as they are', () => {
    const { metadata } = injected(pod({}, { 'prometheus.io/port': '9000' })).pod;
    expect(metadata.annotations).not.toHaveProperty('prometheus.io/scrape');
  });

  it('beside a ConfigMap, passes on what the annotations say and none of the defaults', () => {
    const subject = {
      metadata: { annotations: { ...ASKING } as Record<string, string> },
      spec: { containers: [APP] },
    };
    delete subject.metadata.annotations['token-sidecar.dev/upstream'];
    delete subject.metadata.annotations['token-sidecar.dev/auth-url'];
    subject.metadata.annotations['token-sidecar.dev/config-map'] = 'routes';
    subject.metadata.annotations['token-sidecar.dev/scope'] = 'read';
    const defaults = {
      ...DEFAULTS,
      upstream: 'https://default.example.com',
      authUrl: 'https://default.example.com',
    };
    const outcome = inject(subject, { name: 'default' }, defaults, {});
    if (outcome.result !== 'injected') throw new Error(JSON.stringify(outcome));
    const { env } = patched(subject, outcome.patch).spec.initContainers[0] as PatchedContainer;
    expect(env?.map(({ name }) => name)).toEqual([
      'TOKEN_SIDECAR_CONFIG',
      'TOKEN_SIDECAR_SCOPE',
      'TOKEN_SIDECAR_LOG_LEVEL',
      'POD_NAME',
      'POD_NAMESPACE',
      'NODE_NAME',
    ]);
  });

  it.each(['read $(HOSTNAME)', 'read $$(HOSTNAME)', 'read $$$(HOSTNAME)', 'a$$b', 'ends in $', 'ends in $$'])(
    'the sidecar gets the scope %j from the kubelet as it was written',
    (scope) => {
      const { spec } = injected(pod({}, { 'token-sidecar.dev/scope': scope })).pod;
      const { value } = spec.initContainers[0]?.env?.find(({ name }) => name === 'TOKEN_SIDECAR_SCOPE') ?? {};
      expect(expandedByKubelet(value ?? '')).toBe(scope);
    },
  );

  it('follows a request above the default limit with the limit', () => {
    const { spec } = injected(pod({}, { 'token-sidecar.dev/memory-request': '256Mi' })).pod;
    expect(spec.initContainers[0]?.resources).toMatchObject({
      requests: { memory: '256Mi' },
      limits: { memory: '256Mi' },
    });
  });

  const classic = { cluster: { version: { major: 1, minor: 28 } } };
  it.each([
    [undefined, '5000'],
    [60, '5000'],
    [18, '3000'],
    [5, undefined],
    [0, undefined],
  ])(
    'a classic sidecar lingers within a grace period of %s s: %s ms',
    (terminationGracePeriodSeconds, ms) => {
      const spec = terminationGracePeriodSeconds === undefined ? {} : { terminationGracePeriodSeconds };
      const [, sidecar] = injected(pod(spec), classic).pod.spec.containers;
      const [, , script] = sidecar?.lifecycle?.preStop.exec.command ?? [];
      expect(script).toBe(ms === undefined ? undefined : `setTimeout(() => {}, ${ms})`);
    },
  );

  it.each([
    ['a Job with a classic sidecar', pod({ restartPolicy: 'Never' }), 'quitquitquit', classic],
    ['a shared process namespace', pod({ shareProcessNamespace: true }), 'shareProcessNamespace'],
    [
      'an upstream in clear',
      pod({}, { 'token-sidecar.dev/upstream': 'http://api' }),
      'the access token in clear',
    ],
    [
      'an image without a tag',
      pod({}, { 'token-sidecar.dev/image': 'r.example.com:5000/ts' }),
      'without a tag',
    ],
    [
      'a claim that gets our group',
      pod({ volumes: [{ name: 'data', persistentVolumeClaim: {} }] }),
      'volumes data',
    ],
    [
      'an app with a proxy of its own',
      pod(
        { containers: [{ ...APP, env: [{ name: 'HTTP_PROXY', value: 'http://corporate' }] }] },
        { 'token-sidecar.dev/mode': 'forward', 'token-sidecar.dev/config-map': 'routes' },
      ),
      'container app sets HTTP_PROXY itself',
    ],
  ] as [string, Pod, string, Around?][])('warns of %s', (_, subject, warning, around) => {
    expect(injected(subject, around).warnings).toEqual([expect.stringContaining(warning)]);
  });
});

/** As the kubelet does it: from the left, `$$` is one sign, `$(NAME)` the variable, and any other sign stays. */
function expandedByKubelet(value: string): string {
  return value.replace(/\$(?:\$|\([^)]*\))/g, (found) => (found === '$$' ? '$' : 'EXPANDED'));
}
