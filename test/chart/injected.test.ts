/** The injector beside the chart: what it makes of pods, and what the chart tells it. */

import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { environmentName } from '../../src/config/settings.ts';
import { injectManifests } from '../../src/injector/manifests/inject-manifests.ts';
import { INJECTOR_SETTINGS } from '../../src/injector/settings.ts';
import { DEFAULTS } from '../injector/defaults.ts';
import { containersOf, type Manifest, manifests, only, parseManifests, rendered } from './manifests.ts';
import { restrictedViolations } from './pod-security.ts';
import { ROOT, run } from './tools.ts';
import { validate } from './validator.ts';

const GOLDEN = `${ROOT}test/injector/golden`;

let directory: string;
let chart: string;

/** The example is copied with the chart beside it, because resolving dependencies writes into it. */
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'injected-'));
  for (const path of ['charts/token-sidecar', 'deploy/examples/helm-include']) {
    await cp(`${ROOT}${path}`, join(directory, path), { recursive: true });
  }
  chart = join(directory, 'deploy/examples/helm-include');
  const { ok, stderr } = await run('helm', ['dependency', 'build', chart]);
  if (!ok) throw new Error(stderr);
});

afterAll(() => rm(directory, { recursive: true }));

// 1.28, the oldest, has no native sidecars in its schema.
test.each(['1.30', '1.36'])(
  'every kind of workload that was injected is valid on Kubernetes %s',
  async (version) => {
    // Lists and kinds of operators have no schema here; what is in a list has.
    const files = (await readdir(GOLDEN)).filter(
      (file) => file.endsWith('.out.yaml') && !/^(?:list|rollout|leader-worker-set)\./.test(file),
    );
    expect(files.length).toBeGreaterThan(8);
    const texts = await Promise.all(
      files.map(
        async (file) => [file.replace('.yaml', ''), await readFile(`${GOLDEN}/${file}`, 'utf8')] as const,
      ),
    );

    const { ok, stdout, stderr } = await validate(version, new Map(texts));
    expect(ok, stdout + stderr).toBe(true);
  },
);

async function injectedPod(version: { readonly major: number; readonly minor: number }): Promise<Manifest> {
  const deployment = await readFile(`${GOLDEN}/deployment.in.yaml`, 'utf8');
  const { text } = injectManifests(deployment, {
    defaults: DEFAULTS,
    cluster: { version },
    namespace: 'shop',
  });
  return only(parseManifests(text), 'Deployment').spec.template;
}

test.each([30, 28])('on Kubernetes 1.%s a pod that met the restricted standard still does', async (minor) => {
  expect(restrictedViolations(await injectedPod({ major: 1, minor }))).toEqual([]);
});

test.each([30, 28])('on Kubernetes 1.%s the sidecar is the one of the chart’s template', async (minor) => {
  const library = parseManifests(await rendered({ chart, kubernetes: `1.${minor}` }));
  const [theirs, ours] = [only(library, 'Deployment').spec.template, await injectedPod({ major: 1, minor })];
  const sidecar = (pod: Manifest): Manifest => {
    // The settings differ.
    const { env: _, ...rest } = containersOf(pod).find(({ name }) => name === 'token-sidecar');
    return rest;
  };

  expect(sidecar(ours)).toEqual(sidecar(theirs));
  const isNative = ({ spec }: Manifest): boolean => spec.initContainers?.[0]?.name === 'token-sidecar';
  expect(isNative(ours)).toBe(isNative(theirs));
  const volume = ({ spec }: Manifest): Manifest =>
    spec.volumes.find(({ name }: Manifest) => name === 'token-sidecar-credentials').projected.defaultMode;
  expect(volume(ours)).toBe(volume(theirs));
  expect(ours.spec.securityContext).toMatchObject({ fsGroup: theirs.spec.securityContext.fsGroup });
});

test.each([
  ['a PodMonitor does not', [], 'true'],
  ['a PodMonitor does', ['monitoring.podMonitor.enabled=true'], 'false'],
  ['both are to', ['monitoring.podMonitor.enabled=true', 'sidecar.prometheusAnnotations=true'], 'true'],
])('pods are marked for scraping when %s find them', async (_, set, marked) => {
  const { env } = only(await manifests({ set }), 'Deployment').spec.template.spec.containers[0];

  expect(env).toContainEqual({ name: 'TOKEN_SIDECAR_DEFAULT_PROMETHEUS_ANNOTATIONS', value: marked });
});

test.each(['default-values.yaml', 'everything-values.yaml', 'self-managed-values.yaml'])(
  'the injector of %s is set by settings it has',
  async (ci) => {
    const known = Object.keys(INJECTOR_SETTINGS).map(environmentName);
    const deployment = (await manifests({ ci })).find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-injector'),
    );
    const given = deployment.spec.template.spec.containers[0].env.map(({ name }: Manifest) => name);

    expect(given.length).toBeGreaterThan(5);
    expect(
      given.filter((name: string) => name.startsWith('TOKEN_SIDECAR_') && !known.includes(name)),
    ).toEqual([]);
  },
);
