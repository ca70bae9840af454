/** What is said of pods: which problems and warnings, and how many of them. */

import { describe, expect, it } from 'vitest';
import type { InjectionDefaults } from '../../src/injector/injection-defaults.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import type { PodSpec } from '../../src/injector/pod/pod.ts';
import { ASKING, DEFAULTS } from './defaults.ts';

const APP = { name: 'app' };
const FORWARD = { 'token-sidecar.dev/mode': 'forward', 'token-sidecar.dev/config-map': 'routes' };
const CLASSIC = { 'token-sidecar.dev/native-sidecar': 'false' };

function verdict(
  annotations: Readonly<Record<string, string>>,
  spec: Partial<PodSpec> = {},
  defaults: Partial<InjectionDefaults> = {},
) {
  const pod = {
    metadata: { annotations: { ...ASKING, ...annotations } },
    spec: { containers: [APP], ...spec },
  };
  return inject(pod, { name: 'team' }, { ...DEFAULTS, ...defaults }, {});
}

function warnings(...of: Parameters<typeof verdict>): readonly string[] {
  const { result, ...rest } = verdict(...of);
  expect(result).toBe('injected');
  return 'warnings' in rest ? rest.warnings : [];
}

function refusal(...of: Parameters<typeof verdict>): string {
  const outcome = verdict(...of);
  return outcome.result === 'rejected' ? outcome.message : outcome.result;
}

describe('a refusal', () => {
  it.each([
    ['invalid_annotations', { 'token-sidecar.dev/realm': '' }, {}],
    ['unsuitable_pod', {}, { hostNetwork: true }],
    ['invalid_annotations', { 'token-sidecar.dev/realm': '' }, { hostNetwork: true }],
  ])('is counted as %s', (reason, annotations, spec) => {
    expect(verdict(annotations, spec)).toMatchObject({ result: 'rejected', reason });
  });

  it('names the init container and its field', () => {
    const initContainers = [
      APP,
      { ...APP, volumeMounts: [{ name: 'own' }, { name: 'token-sidecar-credentials' }] },
    ];
    expect(refusal({}, { initContainers })).toContain('spec.initContainers[1].volumeMounts[1].name');
  });

  it('has fifty problems, and the number of further ones', () => {
    const volumes = (count: number) => ({ volumes: Array(count).fill({ name: 'token-sidecar-config' }) });
    expect(refusal({}, volumes(50))).toMatch(/spec\.volumes\[49\]\.name: [^;]*$/);
    expect(refusal({}, volumes(52))).toMatch(/spec\.volumes\[49\]\.name: [^;]*; and 2 more$/);
  });

  it('repeats at most two hundred characters of a value', () => {
    const scope = `${'y '.repeat(99)}yz${'\n'.repeat(9)}`;
    expect(refusal({ 'token-sidecar.dev/scope': scope })).toContain('yz": expected');
  });

  it('repeats a mistyped name up to its allowed length, and suggests a name for ten of them', () => {
    const long = `upstream${'x'.repeat(60)}`;
    const message = refusal({ [`token-sidecar.dev/${long}`]: 'x' });
    expect(message).toContain(`token-sidecar.dev/${long.slice(0, 63)}: expected an annotation that there is`);
    expect(message).not.toContain(long.slice(0, 64));
    const mistyped = Array.from({ length: 12 }, (_, index) => `token-sidecar.dev/upstrea${index}`);
    const all = refusal(Object.fromEntries(mistyped.map((name) => [name, 'x'])));
    expect(all.match(/did you mean/g)).toHaveLength(10);
    expect(all).toContain(mistyped[11]);
    const many = refusal(
      Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`token-sidecar.dev/n${n}`, 'x'])),
    );
    expect(many).toMatch(/token-sidecar\.dev\/…: expected none of 11 further unknown annotations$/);
  });
});

describe('a warning', () => {
  it.each<[string, ...Parameters<typeof verdict>]>([
    ['a native sidecar beside a Job', {}, { restartPolicy: 'Never' }],
    ['a classic one where pods do not end', CLASSIC, { restartPolicy: 'Always' }],
    ['a classic one where nothing is said of it', CLASSIC],
    ['a claim in a pod with a group of its own', {}, { ...claimed(), securityContext: { fsGroup: 1 } }],
    ['a volume that is no claim', {}, { volumes: [{ name: 'data', persistentVolumeClaim: null }] }],
    ['an image with a tag', { 'token-sidecar.dev/image': 'r.example.com:5000/team/ts:1' }],
    ['an image with a digest', { 'token-sidecar.dev/image': `ts@sha256:${'0'.repeat(64)}` }],
    ['an upstream on the pod’s own loopback', { 'token-sidecar.dev/upstream': 'http://127.0.0.1:8080' }],
    ['a default image without a tag', {}, {}, { image: 'ts' }],
    ['other variables of an app', FORWARD, { containers: [{ ...APP, env: [{ name: 'PATH' }] }] }],
  ])('is not given for %s', (_, ...of) => {
    expect(warnings(...of)).toEqual([]);
  });

  it('is given for a provider in clear, where the operator allows one', () => {
    const annotations = { 'token-sidecar.dev/auth-url': 'http://sso.example.com' };
    expect(warnings(annotations, {}, { allowInsecureTokenUrl: true })).toEqual([
      'token-sidecar.dev/auth-url: http carries the client secret in clear',
    ]);
  });

  it('names each claim, and each container of an app', () => {
    expect(warnings({}, claimed('one', 'two'))).toEqual([expect.stringContaining('volumes one, two too')]);
    const env = [{ name: 'HTTP_PROXY' }, { name: 'no_proxy' }];
    const containers = [APP, { name: 'other', env }];
    expect(warnings(FORWARD, { containers })).toEqual([
      expect.stringContaining('container other sets HTTP_PROXY, no_proxy itself'),
    ]);
  });

  it('is one of at most fifty, and as long as the API server allows', () => {
    const env = [{ name: 'HTTP_PROXY' }];
    const containers = Array.from({ length: 60 }, (_, index) => ({
      name: `${index} ${'n'.repeat(5000)}`,
      env,
    }));
    const given = warnings(FORWARD, { containers });
    expect(given).toHaveLength(50);
    expect(new Set(given.map(({ length }) => length))).toEqual(new Set([4096]));
  });
});

function claimed(...names: readonly string[]) {
  const all = names.length === 0 ? ['data'] : names;
  return { volumes: all.map((name) => ({ name, persistentVolumeClaim: {} })) };
}
