import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { parse } from 'yaml';
import { podman } from './container-tools.ts';
import { IMAGE } from './image.ts';
import { type PodSpec, startContainers } from './kubelet.ts';
import { BASE_IMAGE } from './local-images.ts';
import { openPod } from './pod.ts';
import { commandOf, PROJECT } from './programs.ts';
import { API_URL, AUTH_URL, startProvider } from './provider.ts';
import { makeSecretVolume } from './secret-volume.ts';
import { callThroughApp } from './shop.ts';

const MANIFEST = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'shop',
    annotations: {
      'token-sidecar.dev/inject': 'true',
      'token-sidecar.dev/image': IMAGE,
      'token-sidecar.dev/secret': 'shop-credentials',
      'token-sidecar.dev/auth-url': AUTH_URL,
      'token-sidecar.dev/upstream': API_URL,
    },
  },
  spec: {
    containers: [
      {
        name: 'app',
        image: BASE_IMAGE,
        command: commandOf('app'),
        securityContext: { runAsUser: 65_532 },
        volumeMounts: [{ name: 'project', mountPath: PROJECT.target }],
      },
    ],
    volumes: [{ name: 'project', hostPath: { path: PROJECT.source } }],
  },
};

/** The image's own `inject`, given the manifest as a file. */
async function injectSidecar(manifest: object): Promise<{ readonly spec: PodSpec }> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-manifest-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'pod.json'), JSON.stringify(manifest));
  const mount = `--volume=${directory}:/manifests:ro`;
  return parse(
    await podman('run', '--rm', '--user=0', mount, IMAGE, 'inject', '--filename=/manifests/pod.json'),
  );
}

describe.skipIf(inject('imageUnavailable') !== undefined)('a pod that the sidecar was injected into', () => {
  it('runs as its manifest then says, and its app is served from the first request on', async () => {
    const { spec } = await injectSidecar(MANIFEST);
    const pod = await openPod('injected');
    onTestFinished(() => pod.remove());
    const provider = await startProvider(pod, 'any');
    onTestFinished(() => provider.remove());
    const secret = await makeSecretVolume({ client_id: 'shop', client_secret: 'any' });
    onTestFinished(() => rm(secret.directory, { recursive: true }));

    const containers = await startContainers(pod, spec, { 'shop-credentials': secret.directory });
    expect(Object.keys(containers)).toEqual(['token-sidecar', 'app']);
    // The first answer that the app gives, once it listens.
    const { status, body } = await vi.waitFor(() => callThroughApp(pod, '/'), { timeout: 60_000 });
    expect([status, JSON.parse(body)]).toMatchObject([200, { caller: { client: 'shop' } }]);
    expect(await containers['token-sidecar']?.stop()).toBe(0);
  });
});
