import { readdir, readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  containersOf,
  type Manifest,
  NEWEST_KUBERNETES,
  OLDEST_KUBERNETES,
  parseManifests,
  podOf,
} from './manifests.ts';
import { restrictedViolations } from './pod-security.ts';
import { ROOT, run } from './tools.ts';
import { validate } from './validator.ts';

const EXAMPLES = `${ROOT}deploy/examples`;
const OVERLAYS = ['native', 'classic'] as const;

/** Their definitions are in no Go module that can be had; what is checked of them stands below. */
const WITHOUT_SCHEMA = 'secrets.hashicorp.com/';

async function overlay(name: string): Promise<string> {
  const { ok, stdout, stderr } = await run('kustomize', [
    'build',
    `${ROOT}deploy/kustomize/overlays/${name}`,
  ]);
  if (!ok) throw new Error(stderr);
  return stdout;
}

async function exampleFiles(): Promise<string[]> {
  const files = await readdir(EXAMPLES, { recursive: true });
  return files.filter((file) => file.endsWith('.yaml') && !file.startsWith('helm-include/')).sort();
}

function withoutUnknown(text: string): string {
  return text
    .split(/^---$/m)
    .filter((document) => !document.includes(`apiVersion: ${WITHOUT_SCHEMA}`))
    .join('---');
}

const texts = new Map<string, string>();
const names = [...OVERLAYS.map((name) => `kustomize/${name}`), ...(await exampleFiles())];

beforeAll(async () => {
  for (const name of names) {
    const text = name.startsWith('kustomize/')
      ? await overlay(name.replace('kustomize/', ''))
      : await readFile(`${EXAMPLES}/${name}`, 'utf8');
    texts.set(name, text);
  }
});

function manifestsOf(name: string): Manifest[] {
  return parseManifests(texts.get(name) ?? '');
}

function podsOf(name: string): Manifest[] {
  return manifestsOf(name).flatMap((manifest) => podOf(manifest) ?? []);
}

function sidecarsOf(name: string): { pod: Manifest; sidecar: Manifest; native: boolean }[] {
  return podsOf(name).flatMap((pod) =>
    containersOf(pod)
      .filter((container) => container.name === 'token-sidecar')
      .map((sidecar) => ({ pod, sidecar, native: sidecar.restartPolicy === 'Always' })),
  );
}

test('all of it is valid on the newest Kubernetes', async () => {
  const files = new Map([...texts].map(([name, text]) => [name.replaceAll('/', '-'), withoutUnknown(text)]));

  const { ok, stdout, stderr } = await validate(NEWEST_KUBERNETES, files);

  expect(ok, stdout + stderr).toBe(true);
});

test('the classic overlay is valid on the oldest Kubernetes', async () => {
  const { ok, stdout, stderr } = await validate(
    OLDEST_KUBERNETES,
    new Map([['classic', texts.get('kustomize/classic') ?? '']]),
  );

  expect(ok, stdout + stderr).toBe(true);
});

describe.each(names)('%s', (name) => {
  test('every pod meets the restricted standard', () => {
    expect(podsOf(name).length).toBeGreaterThan(0);
    expect(podsOf(name).flatMap(restrictedViolations)).toEqual([]);
  });

  test('the sidecar is as the chart makes it', () => {
    const all = sidecarsOf(name);
    expect(all).toHaveLength(name.startsWith('injected/') ? 0 : 1);
    for (const { sidecar } of all) {
      expect(sidecar).toMatchObject({
        args: ['proxy'],
        ports: [{ name: 'token-admin', containerPort: 15081 }],
        startupProbe: { httpGet: { path: '/startupz', port: 'token-admin' } },
        readinessProbe: { httpGet: { path: '/readyz', port: 'token-admin' } },
        livenessProbe: { httpGet: { path: '/livez', port: 'token-admin' } },
        resources: { requests: { cpu: '10m', memory: '48Mi' }, limits: { memory: '128Mi' } },
        securityContext: { runAsUser: 65532, runAsNonRoot: true, readOnlyRootFilesystem: true },
      });
    }
  });

  test('a mounted Secret is readable by the sidecar, complete, and a directory', () => {
    for (const { pod, sidecar } of sidecarsOf(name)) {
      for (const { name: volumeName, subPath } of sidecar.volumeMounts ?? []) {
        expect(subPath).toBeUndefined();
        const volume = pod.spec.volumes.find((candidate: Manifest) => candidate.name === volumeName);
        expect(volume).toBeDefined();
        if (volume.projected === undefined) continue;
        expect(volume.projected.defaultMode).toBe(0o440);
        expect(pod.spec.securityContext.fsGroup).toBe(65532);
        for (const source of volume.projected.sources) expect(source.secret.optional).toBe(false);
      }
    }
  });
});

test('the overlays differ in the kind of container, and in that a classic one has to linger', () => {
  const [native] = sidecarsOf('kustomize/native');
  const [classic] = sidecarsOf('kustomize/classic');

  expect(native?.native).toBe(true);
  expect(classic?.native).toBe(false);
  const { restartPolicy: _, ...same } = native?.sidecar ?? {};
  const { lifecycle, ...rest } = classic?.sidecar ?? {};
  expect(rest).toEqual(same);
  expect(lifecycle.preStop.exec.command).toEqual(['node', '-e', 'setTimeout(() => {}, 5000)']);
});

test.each(['job/job.yaml', 'cronjob/cronjob.yaml'])('%s completes: its sidecar is native', (name) => {
  expect(sidecarsOf(name).map(({ native }) => native)).toEqual([true]);
});

test('the example of two APIs names credentials that are mounted and routes that use them', () => {
  const name = 'two-apis/deployment.yaml';
  const config = parse(
    manifestsOf(name).find(({ kind }) => kind === 'ConfigMap')?.data['token-sidecar.yaml'],
  ) as { credentials: { name: string; dir: string }[]; routes: { credential: string }[] };
  const mounts = sidecarsOf(name)[0]?.sidecar.volumeMounts.map(({ mountPath }: Manifest) => mountPath);

  expect(config.credentials).toHaveLength(2);
  for (const { dir } of config.credentials) expect(mounts).toContain(dir);
  expect(config.routes.map(({ credential }) => credential).sort()).toEqual(
    config.credentials.map(({ name: credential }) => credential).sort(),
  );
});

test('the Secrets that operators make are the ones that are mounted, with the two keys', () => {
  const mounted = (name: string) => podsOf(name)[0].spec.volumes[0].projected.sources[0].secret.name;

  const external = manifestsOf('external-secrets/external-secret.yaml').find(
    ({ kind }) => kind === 'ExternalSecret',
  );
  expect(external.spec.target.name).toBe(mounted('external-secrets/external-secret.yaml'));
  expect(external.spec.data.map(({ secretKey }: Manifest) => secretKey)).toEqual([
    'client_id',
    'client_secret',
  ]);

  const vault = manifestsOf('vault-secrets-operator/static-secret.yaml').find(
    ({ kind }) => kind === 'VaultStaticSecret',
  );
  expect(vault.spec.destination.name).toBe(mounted('vault-secrets-operator/static-secret.yaml'));
  const auth = manifestsOf('vault-secrets-operator/static-secret.yaml').find(
    ({ kind }) => kind === 'VaultAuth',
  );
  expect(vault.spec.vaultAuthRef).toBe(auth.metadata.name);
});
