import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ANNOTATION } from '../../src/injector/pod/annotations.ts';
import { hasSidecar, inject } from '../../src/injector/pod/inject.ts';
import type { Pod } from '../../src/injector/pod/pod.ts';
import { ASKING, DEFAULTS } from './defaults.ts';
import { type PatchedContainer, type PatchedPod, patched } from './patched.ts';

const NAMESPACE = { name: 'default' };

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,10}$/);
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const nullable = <T>(value: fc.Arbitrary<T>) => fc.oneof(fc.constant(null), fc.constant(undefined), value);

const container = fc.record({
  name,
  env: nullable(
    fc.array(fc.record({ name: fc.constantFrom('HTTP_PROXY', 'no_proxy', 'A/B~C'), value: fc.string() }), {
      maxLength: 3,
    }),
  ),
  ports: nullable(
    fc.array(fc.record({ containerPort: fc.integer({ min: 1, max: 15_000 }) }), { maxLength: 2 }),
  ),
});

const pod = fc
  .record({
    annotations: fc.dictionary(
      fc.string().map((text) => `example.com/${text}`),
      fc.string(),
      { maxKeys: 3 },
    ),
    forward: fc.boolean(),
    native: fc.boolean(),
    containers: fc.array(container, { minLength: 1, maxLength: 3 }),
    initContainers: nullable(fc.array(container, { maxLength: 3 })),
    volumes: nullable(fc.array(fc.record({ name }), { maxLength: 3 })),
    securityContext: nullable(fc.record({ fsGroup: nullable(fc.nat()), runAsUser: optional(fc.nat()) })),
    terminationGracePeriodSeconds: nullable(fc.nat(100)),
  })
  .map(({ annotations, forward, native, ...spec }) =>
    // Through JSON, as pods come.
    JSON.parse(
      JSON.stringify({
        metadata: {
          annotations: {
            ...annotations,
            ...ASKING,
            'token-sidecar.dev/native-sidecar': String(native),
            ...(forward
              ? { 'token-sidecar.dev/mode': 'forward', 'token-sidecar.dev/config-map': 'routes' }
              : {}),
          },
        },
        spec,
      }),
    ),
  );

function injected(subject: Pod): PatchedPod {
  const injection = inject(subject, NAMESPACE, DEFAULTS, {});
  if (injection.result !== 'injected') throw new Error(JSON.stringify(injection));
  return patched(subject, injection.patch);
}

it('applies to any pod, and puts the sidecar in once', () => {
  fc.assert(
    fc.property(pod, (subject: Pod) => {
      const { spec } = injected(subject);
      const all = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
      expect(all.filter((each) => each.name === 'token-sidecar')).toHaveLength(1);
    }),
  );
});

it('a second pass changes nothing', () => {
  fc.assert(
    fc.property(pod, (subject: Pod) => {
      expect(inject(injected(subject), NAMESPACE, DEFAULTS, {})).toMatchObject({
        result: 'skipped',
        reason: 'already_injected',
        warnings: [],
      });
    }),
  );
});

it('removes and moves nothing: without the additions, the pod is as before', () => {
  fc.assert(
    fc.property(pod, (subject: Pod) => {
      const after = injected(subject);
      const before = subject as PatchedPod;
      const isOld = ({ name: each }: { name: string }) => !each.startsWith('token-sidecar');
      for (const list of ['containers', 'initContainers', 'volumes'] as const) {
        const old = (before.spec[list] ?? []) as readonly PatchedContainer[];
        const now = ((after.spec[list] ?? []) as readonly PatchedContainer[]).filter(isOld);
        expect(now.map(withoutProxy)).toEqual(old.map(withoutProxy));
        now.forEach(({ env }, index) => {
          const own = old[index]?.env ?? [];
          expect((env ?? []).slice(0, own.length)).toEqual(own);
        });
      }
      expect(after.metadata.annotations).toMatchObject(before.metadata.annotations);
      const { fsGroup, ...security } = before.spec.securityContext ?? {};
      expect(after.spec.securityContext).toMatchObject({ ...security, fsGroup: fsGroup ?? 65532 });
    }),
  );
});

function withoutProxy({ env: _, ...rest }: PatchedContainer): object {
  return rest;
}

it('any annotations lead to a verdict, and an injected pod has its sidecar', () => {
  const values = fc.oneof(fc.string(), fc.constantFrom('true', 'false', 'https://x', 'http://x', '10m', 'a'));
  const annotations = fc.dictionary(
    fc.constantFrom(...Object.values(ANNOTATION), 'token-sidecar.dev/x'),
    values,
  );
  fc.assert(
    fc.property(annotations, (given) => {
      const subject = { metadata: { annotations: given }, spec: { containers: [{ name: 'app' }] } };
      const injection = inject(subject, NAMESPACE, DEFAULTS, {});
      if (injection.result === 'injected') expect(hasSidecar(patched(subject, injection.patch))).toBe(true);
      else expect(['skipped', 'rejected']).toContain(injection.result);
    }),
  );
});
