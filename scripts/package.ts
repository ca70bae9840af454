/**
 * Packs dist/ as the npm package, into the directory given or the current one, and prints the path of the tarball. Its manifest is
 * made here: what is bundled is no dependency any more, and the Node that comes with a checkout is for those who work on it.
 */

import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
const STAGE = join(ROOT, '.cache/package');

const FILES = ['dist', 'schema', 'LICENSE', 'README.md', 'CHANGELOG.md'];

/** What a user's npm reads of the manifest. */
const FIELDS = ['name', 'version', 'description', 'license', 'repository', 'type', 'bin', 'engines'];

const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Record<string, unknown>;
await rm(STAGE, { recursive: true, force: true });
await mkdir(STAGE, { recursive: true });
for (const file of FILES) await cp(join(ROOT, file), join(STAGE, file), { recursive: true });
const published = Object.fromEntries(FIELDS.map((field) => [field, manifest[field]]));
await writeFile(join(STAGE, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);

const destination = resolve(process.argv[2] ?? '.');
await mkdir(destination, { recursive: true });
const args = ['pack', '--json', '--pack-destination', destination];
const { stdout } = await promisify(execFile)('npm', args, { cwd: STAGE });
const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
process.stdout.write(`${join(destination, filename)}\n`);
