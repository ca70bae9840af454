/** Other webhooks add containers after the first pass; `reinvocationPolicy: IfNeeded` calls us again. */

import { expect, it } from 'vitest';
import { inject } from '../../src/injector/pod/inject.ts';
import type { Container, Pod } from '../../src/injector/pod/pod.ts';
import { ASKING, DEFAULTS } from './defaults.ts';
import { type PatchedPod, patched } from './patched.ts';

const NAMESPACE = { name: 'team' };
const PROXY = ['HTTP_PROXY', 'http_proxy', 'NO_PROXY', 'no_proxy'];

function pod(mode: string, native: boolean, spec: Pod['spec'] = {}): Pod {
  const annotations = {
    ...ASKING,
    'token-sidecar.dev/mode': mode,
    'token-sidecar.dev/native-sidecar': String(native),
    'token-sidecar.dev/config-map': 'routes',
  };
  return { metadata: { annotations }, spec: { containers: [{ name: 'app' }], ...spec } };
}

function pass(subject: Pod): PatchedPod {
  const injection = inject(subject, NAMESPACE, DEFAULTS, {});
  if (injection.result !== 'injected') throw new Error(JSON.stringify(injection));
  return patched(subject, injection.patch);
}

const variablesOf = (containers: readonly Container[] | null | undefined, name: string): string[] =>
  (containers?.find((container) => container.name === name)?.env ?? []).map((variable) => variable.name);

it.each([true, false])(
  'a container that came later gets the proxy’s variables, the sidecar never (native: %s)',
  (native) => {
    const { metadata, spec } = pass(pod('forward', native));
    const later = { name: 'later', env: [{ name: 'NO_PROXY', value: 'own' }] };
    const again = { metadata, spec: { ...spec, containers: [later, ...spec.containers] } } as Pod;
    expect(inject(again, NAMESPACE, DEFAULTS, {})).toMatchObject({
      result: 'injected',
      reason: 'later_containers',
    });

    const after = pass(again);
    expect(variablesOf(after.spec.containers, 'later')).toEqual([
      'NO_PROXY',
      'HTTP_PROXY',
      'http_proxy',
      'no_proxy',
    ]);
    expect(variablesOf(after.spec.containers, 'app')).toEqual(PROXY);
    const all = [...(after.spec.initContainers ?? []), ...after.spec.containers];
    expect(variablesOf(all, 'token-sidecar').filter((name) => PROXY.includes(name))).toEqual([]);
    expect(inject(after as Pod, NAMESPACE, DEFAULTS, {})).toMatchObject({
      result: 'skipped',
      reason: 'already_injected',
    });
  },
);

it('an init container that came later is served when it runs after a native sidecar', () => {
  const { metadata, spec } = pass(pod('forward', true));
  const initContainers = [{ name: 'before' }, ...(spec.initContainers ?? []), { name: 'behind' }];
  const after = pass({ metadata, spec: { ...spec, initContainers } } as Pod);
  expect(variablesOf(after.spec.initContainers, 'behind')).toEqual(PROXY);
  expect(variablesOf(after.spec.initContainers, 'before')).toEqual([]);
});

it('an init container that came later is not served by a sidecar that starts after it', () => {
  const { metadata, spec } = pass(pod('forward', false));
  const again = { metadata, spec: { ...spec, initContainers: [{ name: 'init' }] } } as Pod;
  expect(inject(again, NAMESPACE, DEFAULTS, {})).toMatchObject({ result: 'skipped' });
});

it('in reverse mode a second pass changes nothing', () => {
  const { metadata, spec } = pass(pod('reverse', true));
  const again = { metadata, spec: { ...spec, containers: [...spec.containers, { name: 'later' }] } } as Pod;
  expect(inject(again, NAMESPACE, DEFAULTS, {})).toMatchObject({
    result: 'skipped',
    reason: 'already_injected',
  });
});

/** As Go writes a pod that it has read by types of before Kubernetes 1.28: those know no restartPolicy of a container. */
function byOldTypes({ metadata, spec }: PatchedPod): Pod {
  const initContainers = spec.initContainers?.map(({ restartPolicy: _, ...known }) => known);
  return { metadata, spec: { ...spec, initContainers } } as Pod;
}

it.each(['reverse', 'forward'])(
  'a native sidecar that lost its restartPolicy to another webhook gets it back, and whoever made the pod is told: %s',
  (mode) => {
    const before = { name: 'before', resources: {} };
    const first = pass(pod(mode, true, { initContainers: [before] }));
    const again = byOldTypes({
      ...first,
      spec: { ...first.spec, initContainers: [before, ...(first.spec.initContainers ?? [])] },
    });

    const injection = inject(again, NAMESPACE, DEFAULTS, {});
    expect(injection).toMatchObject({
      result: 'injected',
      reason: 'restored',
      patch: [{ op: 'add', path: '/spec/initContainers/1/restartPolicy', value: 'Always' }],
      warnings: [expect.stringMatching(/another webhook dropped restartPolicy: Always .* wants an upgrade/)],
    });
    expect(inject(pass(again) as Pod, NAMESPACE, DEFAULTS, {})).toMatchObject({
      result: 'skipped',
      reason: 'already_injected',
    });
  },
);

it('a restartPolicy that somebody else has given the sidecar stays', () => {
  const { metadata, spec } = pass(pod('reverse', true));
  const initContainers = spec.initContainers?.map((each) => ({ ...each, restartPolicy: 'OnFailure' }));
  expect(
    inject({ metadata, spec: { ...spec, initContainers } } as Pod, NAMESPACE, DEFAULTS, {}),
  ).toMatchObject({
    reason: 'already_injected',
  });
});
