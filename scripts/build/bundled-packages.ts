import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BundledFile } from './program.ts';

/** A package of which at least one module is in the program. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression of its manifest. */
  readonly licence: string;
  /** Its licence, and its notices if it has any, as it comes with them. */
  readonly texts: readonly string[];
  /** The files of the program that it is in. */
  readonly files: readonly string[];
}

const LICENCE_FILE = /^(un)?licen[cs]e|^copying/i;
const NOTICE_FILE = /^notice/i;

/** Of packages that leave their licence in their repository: a copy of it in `licences/`. */
const LICENCES_OF_REPOSITORIES: Readonly<Record<string, string>> = { '@redis/client': 'redis-client.txt' };

/**
 * The packages behind the bundler's own list of modules, by name and version.
 * @throws {Error} for a package that comes without a licence's name or text: it may not be passed on.
 */
export async function readBundledPackages(
  root: string,
  files: readonly BundledFile[],
): Promise<BundledPackage[]> {
  const filesOf = new Map<string, Set<string>>();
  for (const { name, modules } of files) {
    for (const module of modules) {
      const directory = packageDirectory(root, module);
      if (directory === undefined) continue;
      filesOf.set(directory, (filesOf.get(directory) ?? new Set()).add(name));
    }
  }
  const packages = await Promise.all(
    [...filesOf].map(([directory, names]) => readPackage(directory, [...names].sort())),
  );
  return packages.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** As package managers write it, and as the bill of materials refers to it. */
export function keyOf({ name, version }: Pick<BundledPackage, 'name' | 'version'>): string {
  return `${name}@${version}`;
}

/** Undefined for a module of the project. */
function packageDirectory(root: string, module: string): string | undefined {
  // Its helpers for modules written for CommonJS.
  if (module.startsWith('\0rolldown/')) return join(root, 'node_modules/rolldown');
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(module)?.[0];
}

async function readPackage(directory: string, files: readonly string[]): Promise<BundledPackage> {
  const manifest = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'));
  const { name, version, license: licence } = manifest as Record<string, unknown>;
  if (typeof name !== 'string' || typeof version !== 'string' || typeof licence !== 'string') {
    throw new Error(
      `${directory}/package.json must have a name, a version and a license, all of them strings`,
    );
  }
  const entries = (await readdir(directory)).sort();
  const licences = entries.filter((entry) => LICENCE_FILE.test(entry));
  const ofRepository = licences.length === 0 ? LICENCES_OF_REPOSITORIES[name] : undefined;
  if (licences.length === 0 && ofRepository === undefined) {
    throw new Error(`${directory} is bundled and has no file with its licence`);
  }
  const notices = entries.filter((entry) => NOTICE_FILE.test(entry)).map((entry) => join(directory, entry));
  const found =
    ofRepository === undefined
      ? licences.map((entry) => join(directory, entry))
      : [join(import.meta.dirname, 'licences', ofRepository)];
  const texts = await Promise.all([...found, ...notices].map((path) => readFile(path, 'utf8')));
  return { name, version, licence, texts: texts.map((text) => text.trim()), files };
}
