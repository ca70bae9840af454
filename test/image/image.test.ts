import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { inspect, podman } from './container-tools.ts';
import { BUILD_ARGUMENTS, IMAGE } from './image.ts';
import { BASE_IMAGE } from './local-images.ts';

interface ImageDescription {
  readonly Size: number;
  readonly Config: Readonly<Record<string, unknown>>;
}

const MEGABYTE = 1_000_000;

/** Absolute paths of all files in an image. */
async function filesOf(image: string): Promise<string[]> {
  const mounted = await podman('image', 'mount', image);
  try {
    const entries = await readdir(mounted, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(mounted.length));
  } finally {
    await podman('image', 'unmount', image);
  }
}

describe.skipIf(inject('imageUnavailable') !== undefined)('the image', () => {
  it('runs the sidecar as a numbered user that is not root, without a shell in between', async () => {
    const { Config } = await inspect<ImageDescription>(IMAGE);
    expect(Config).toMatchObject({
      User: '65532:65532',
      Entrypoint: [
        'node',
        // Nobody opens a debugger by a signal.
        '--disable-sigusr1',
        expect.stringMatching(/^--max-semi-space-size=/),
        '--disable-proto=delete',
        '/app/dist/token-sidecar.js',
      ],
      Cmd: ['proxy'],
    });
    expect(Config).not.toHaveProperty('Healthcheck');
    // Nothing of it calls C, but what the mode redirect runs.
    expect(Config['Env']).toContain('NODE_OPTIONS=--no-experimental-ffi');
  });

  it('says what it is made from', async () => {
    const { Config } = await inspect<ImageDescription>(IMAGE);
    expect(Config['Labels']).toMatchObject({
      'org.opencontainers.image.title': 'token-sidecar',
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': BUILD_ARGUMENTS.VERSION,
      'org.opencontainers.image.revision': BUILD_ARGUMENTS.REVISION,
      'org.opencontainers.image.created': BUILD_ARGUMENTS.CREATED,
      'org.opencontainers.image.base.name': BASE_IMAGE,
    });
    expect(await podman('run', '--rm', IMAGE, '--version')).toContain(`token-sidecar ${manifest.version} (`);
  });

  it('is at most 15 MB larger than its base', async () => {
    const [image, base] = await Promise.all([
      inspect<ImageDescription>(IMAGE),
      inspect<ImageDescription>(BASE_IMAGE),
    ]);
    expect((image.Size - base.Size) / MEGABYTE).toBeLessThan(15);
  });

  it('adds the bundle to its base and nothing else', async () => {
    const base = new Set(await filesOf(BASE_IMAGE));
    const added = (await filesOf(IMAGE)).filter((path) => !base.has(path));
    expect(added).toContain('/app/dist/proxy.js');
    expect(added).toContain('/app/dist/THIRD-PARTY-LICENSES.txt');
    expect(added).toContain('/app/dist/sbom.cdx.json');
    const others = added.filter(
      (path) => !/^\/app\/(LICENSE|package\.json|dist\/[\w.-]+\.(js|txt|json))$/.test(path),
    );
    expect(others).toEqual([]);
  });

  it('has no shell, on a base that has none', async () => {
    const shells = (await filesOf(IMAGE)).filter((path) => /\/(ba|da|a|z)?sh$|busybox/.test(path));
    expect(shells).toEqual([]);
  });

  it('tells nothing of the machine that built it', async () => {
    const history = await podman('history', '--no-trunc', '--format', '{{.CreatedBy}} {{.Comment}}', IMAGE);
    const { Config } = await inspect<ImageDescription>(IMAGE);
    const told = `${history}\n${JSON.stringify(Config)}`;
    expect(told).toContain('COPY');
    expect(told).not.toMatch(/npmrc|_auth|password|secret=|BEGIN |NODE_EXTRA_CA_CERTS|_proxy/i);
  });
});
