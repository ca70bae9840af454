import { ROOT } from './container-tools.ts';
import { BASE_IMAGE } from './local-images.ts';
import { type Container, type Pod, RESTRICTED } from './pod.ts';

/** Where the project is in a container that runs one of its files. */
export const PROJECT = { source: ROOT, target: '/project' };

export type Program = 'app' | 'api';

/** A file of test/image/programs, run on plain Node. */
export function commandOf(program: Program): readonly string[] {
  return ['node', `${PROJECT.target}/test/image/programs/${program}.ts`];
}

/** Runs it as the image's user, confined as the image is. */
export function runProgram(pod: Pod, program: Program): Promise<Container> {
  return pod.run(program, {
    image: BASE_IMAGE,
    command: commandOf(program),
    mounts: { [PROJECT.target]: PROJECT.source },
    confinement: [...RESTRICTED, '--user=65532:65532'],
  });
}
