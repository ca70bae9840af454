import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** What the build reads, besides installed packages. */
const INPUTS = ['package.json', 'package-lock.json', 'scripts', 'src', 'docs/runbooks'];

/** What the npm package has beside the bundle. */
const PUBLISHED = ['schema', 'LICENSE', 'README.md', 'CHANGELOG.md'];

export const REVISION = '0123456789ab';

export interface BuiltCopy {
  /** Of the copy that was built. */
  readonly root: string;
  /** What the build wrote. */
  readonly output: string;
  remove(): Promise<void>;
}

/**
 * Copies the project to another directory, its packages as hard links, and builds it there.
 * @param place below a directory made for it: paths of different lengths show whether they get into the output.
 */
export async function buildCopy(place: string): Promise<BuiltCopy> {
  await mkdir(join(ROOT, '.cache'), { recursive: true });
  // Hard links can't leave the file system.
  const temporary = await mkdtemp(join(ROOT, '.cache/build-'));
  const root = join(temporary, place);
  await mkdir(root, { recursive: true });
  for (const input of [...INPUTS, ...PUBLISHED])
    await cp(join(ROOT, input), join(root, input), { recursive: true });
  await run('cp', ['-al', join(ROOT, 'node_modules'), root]);
  await run(process.execPath, ['scripts/build.ts'], { cwd: root, env: { ...process.env, REVISION } });
  return {
    root,
    output: join(root, 'dist'),
    remove: () => rm(temporary, { recursive: true }),
  };
}
