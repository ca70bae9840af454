import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

interface Change {
  /** Below `src`. */
  readonly file: string;
  /** Occurs once. */
  readonly mended: string;
  readonly faulty: string;
}

/** Faults that there were, by how their mends are taken out again. */
export const MENDED_FAULTS = {
  /** The end of the stream was acted upon while the 401 before it was held back. */
  'held-401': [
    {
      file: 'proxy/upstream/http1/connection.ts',
      mended: '        state.end ??= end;\n',
      faulty: '        this.#state = state.busy;\n        this.#endStream(state.busy.answer, end);\n',
    },
  ],
  /** A connection that was given up in this turn was in the pool until it said 'close'. */
  'dead-lent': [
    {
      file: 'proxy/upstream/http1/connection.ts',
      mended: '    this.socket.destroy();\n    this.#options.onGone(this);\n',
      faulty: '    this.socket.destroy();\n',
    },
    {
      file: 'proxy/upstream/http1/connection.ts',
      mended:
        "    if (dead || idle.kind !== 'idle' || isSpent(idle, now) || isPast(this.#retiresAt, now)) {\n",
      faulty: "    if (!dead && (idle.kind !== 'idle' || isSpent(idle, now))) {\n",
    },
    {
      file: 'proxy/upstream/http1/connection.ts',
      mended: '    if (idle.doubtful || elapsedMs(idle.since, now) >= trustMs) {\n',
      faulty: '    if (!dead && (idle.doubtful || elapsedMs(idle.since, now) >= trustMs)) {\n',
    },
  ],
} as const satisfies Record<string, readonly Change[]>;

export type MendedFault = keyof typeof MENDED_FAULTS;

export interface FaultySource {
  readonly directory: string;
  remove(): Promise<void>;
}

/**
 * A copy of the sources that has the fault again.
 * @throws {Error} when what would be changed is not there any more: then the fault has to be described anew.
 */
export async function sourceWith(fault: MendedFault): Promise<FaultySource> {
  const copy = await mkdtemp(join(tmpdir(), `token-sidecar-${fault}-`));
  const directory = join(copy, 'src');
  await Promise.all([
    cp(join(ROOT, 'src'), directory, { recursive: true }),
    cp(join(ROOT, 'package.json'), join(copy, 'package.json')),
    symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules')),
  ]);
  const changes: readonly Change[] = MENDED_FAULTS[fault];
  for (const { file, mended, faulty } of changes) {
    const path = join(directory, file);
    const text = await readFile(path, 'utf8');
    if (text.split(mended).length !== 2) throw new Error(`${fault}: ${file} has not once: ${mended}`);
    await writeFile(
      path,
      text.replace(mended, () => faulty),
    );
  }
  return { directory, remove: () => rm(copy, { recursive: true }) };
}
