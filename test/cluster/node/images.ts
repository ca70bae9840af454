/** The images that the cluster's pods run, as archives that containerd imports. */

import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { parse } from 'yaml';
import { podman, ROOT, run } from '../../image/container-tools.ts';
import { BASE_IMAGE, BUILD_IMAGE, provideLocalImages } from '../../image/local-images.ts';
import { IMAGES } from './places.ts';

export const PAUSE_IMAGE = 'localhost/pause:1';
/** Node, and the programs of test/cluster/programs in /programs. */
export const PROGRAMS_IMAGE = 'localhost/cluster-programs:1';

/** Of test/cluster/programs. */
const PROGRAMS = ['api', 'caller', 'front', 'mesh', 'relay'] as const;
export type Program = (typeof PROGRAMS)[number];

const CATATONIT = '/usr/libexec/podman/catatonit';

/** Builds them, the product's from its Dockerfile under the name that the chart asks for. */
export async function makeImageArchives(): Promise<void> {
  await provideLocalImages();
  await buildFrom(PAUSE_IMAGE, 'FROM scratch\nCOPY . /\nENTRYPOINT ["/catatonit", "-P"]\n', (directory) =>
    cp(CATATONIT, join(directory, 'catatonit'), { dereference: true }),
  );
  await buildFrom(PROGRAMS_IMAGE, `FROM ${BASE_IMAGE}\nCOPY . /programs\nUSER 10001:10001\n`, bundlePrograms);
  const product = await productImage();
  await run(
    ...(['buildah', 'build', '--pull-never', '--build-arg', `BUILD_IMAGE=${BUILD_IMAGE}`] as const),
    ...['--build-arg', `BASE_IMAGE=${BASE_IMAGE}`, '--build-arg', 'REVISION=cluster'],
    ...['--build-arg', `VERSION=${product.split(':').at(-1)}`, '--tag', product, '.'],
  );
  for (const [index, image] of [PAUSE_IMAGE, PROGRAMS_IMAGE, product].entries()) {
    const archive = join(IMAGES, `${index}.tar`);
    await podman('save', '--quiet', '--format', 'docker-archive', '--output', archive, image);
  }
}

/** The image that the chart names where nothing else is said. */
export async function productImage(): Promise<string> {
  const chart = join(ROOT, 'charts/token-sidecar');
  const values = parse(await readFile(join(chart, 'values.yaml'), 'utf8')) as {
    image: { repository: string };
  };
  const { appVersion } = parse(await readFile(join(chart, 'Chart.yaml'), 'utf8')) as { appVersion: string };
  return `${values.image.repository}:${appVersion}`;
}

/** Each program as one file, so that the image needs no packages. */
async function bundlePrograms(directory: string): Promise<void> {
  for (const name of PROGRAMS) {
    const bundle = await rolldown({
      input: join(ROOT, `test/cluster/programs/${name}.ts`),
      platform: 'node',
      cwd: ROOT,
    });
    await bundle.write({ file: join(directory, `${name}.js`), format: 'esm' });
    await bundle.close();
  }
}

async function buildFrom(
  image: string,
  dockerfile: string,
  fill: (directory: string) => Promise<void>,
): Promise<void> {
  const temporary = await mkdtemp(join(tmpdir(), 'token-sidecar-image-'));
  try {
    const context = join(temporary, 'context');
    await mkdir(context);
    await fill(context);
    const file = join(temporary, 'Dockerfile');
    await writeFile(file, dockerfile);
    await run('buildah', 'build', '--quiet', '--pull-never', '--file', file, '--tag', image, context);
  } finally {
    await rm(temporary, { recursive: true });
  }
}
