import type { TestProject } from 'vitest/node';
import { podman, run, whyUnavailable } from './container-tools.ts';
import { BUILD_ARGUMENTS, IMAGE } from './image.ts';
import { provideLocalImages } from './local-images.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Why there is no image; undefined when it has been built. */
    imageUnavailable: string | undefined;
  }
}

/** Builds the image once for all files. Where that can't be, tests are skipped, except in CI, where it is an error. */
export default async function setUp({ provide }: TestProject): Promise<(() => Promise<void>) | undefined> {
  const reason = whyUnavailable();
  provide('imageUnavailable', reason);
  if (reason !== undefined) {
    if (process.env['CI'] === 'true') throw new Error(`the image cannot be tested: ${reason}`);
    process.stderr.write(`The tests of the image are skipped: ${reason}\n`);
    return undefined;
  }
  await removePods();
  await provideLocalImages();
  const given = Object.entries(BUILD_ARGUMENTS).flatMap(([name, value]) => [
    '--build-arg',
    `${name}=${value}`,
  ]);
  await run('buildah', 'build', '--pull-never', ...given, '--tag', IMAGE, '.');
  // What earlier builds were called.
  await podman('image', 'prune', '--force');
  return removePods;
}

/** All that are in the storage of these tests. */
async function removePods(): Promise<void> {
  await podman('pod', 'rm', '--all', '--force', '--time', '0');
}
