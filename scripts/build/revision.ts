import { execFileSync } from 'node:child_process';

/** The commit that is built; `REVISION` where there is no checkout, such as in the build of an image. */
export function readRevision(root: string, env: NodeJS.ProcessEnv): string {
  const given = env['REVISION'];
  if (given !== undefined && given !== '') return given;
  try {
    const args = ['rev-parse', '--short=12', 'HEAD'];
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    // Not a checkout, such as an unpacked archive.
    return 'unknown';
  }
}
