/** What the operator says of pods because of where they run: a registry with a login, a platform that assigns users. */

import { expect, it } from 'vitest';
import { readSettings } from '../../src/config/settings.ts';
import { INJECTION_SETTINGS, readInjectionDefaults } from '../../src/injector/injection-defaults.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import type { Pod, PodSpec } from '../../src/injector/pod/pod.ts';
import { describeProblem, type Problem } from '../../src/platform/problems.ts';
import { ASKING } from './defaults.ts';
import { patched } from './patched.ts';

function injected(flags: readonly string[], spec: Partial<PodSpec> = {}): PodSpec {
  const pod: Pod = { metadata: { annotations: ASKING }, spec: { containers: [{ name: 'app' }], ...spec } };
  const problems: Problem[] = [];
  const defaults = readInjectionDefaults(readSettings(INJECTION_SETTINGS, [...flags], {}).given, problems);
  expect(problems.map(describeProblem)).toEqual([]);
  const injection = inject(pod, { name: 'shop' }, defaults, {});
  if (injection.result !== 'injected') throw new Error(injection.result);
  return patched(pod, injection.patch).spec as unknown as PodSpec;
}

function sidecarOf({ initContainers }: PodSpec): { readonly securityContext: object } {
  return initContainers?.[0] as unknown as { securityContext: object };
}

it('adds pull Secrets to a pod that has none', () => {
  expect(injected(['--default-image-pull-secrets', 'one,two']).imagePullSecrets).toEqual([
    { name: 'one' },
    { name: 'two' },
  ]);
});

it('adds pull Secrets behind those of the pod, each once', () => {
  const spec = injected(['--default-image-pull-secrets=one,two'], {
    imagePullSecrets: [{ name: 'two' }, {}],
  });

  expect(spec.imagePullSecrets).toEqual([{ name: 'two' }, {}, { name: 'one' }]);
});

it('adds no pull Secret unless told to', () => {
  expect(injected([])).not.toHaveProperty('imagePullSecrets');
});

it('leaves users and groups to the platform where told to', () => {
  const spec = injected(['--default-run-as-user=none']);

  expect(spec).not.toHaveProperty('securityContext');
  expect(sidecarOf(spec).securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  });
});

it('takes another user, and its group for the volumes', () => {
  const spec = injected(['--default-run-as-user=1234']);

  expect(sidecarOf(spec).securityContext).toMatchObject({ runAsUser: 1234, runAsGroup: 1234 });
  expect(spec.securityContext).toMatchObject({ fsGroup: 1234 });
});

it.each(['0', '-1', 'root', '2147483648', '1e3'])('refuses the user %s', (user) => {
  const problems: Problem[] = [];

  readInjectionDefaults(
    readSettings(INJECTION_SETTINGS, [`--default-run-as-user=${user}`], {}).given,
    problems,
  );

  expect(problems.map(describeProblem)).toEqual([expect.stringContaining('2147483647, or none')]);
});
