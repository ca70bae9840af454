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

export interface Fault {
  readonly changes: readonly Change[];
  /** Walks from this seed on find it soon. */
  readonly seed: number;
}

/** Faults that there were, by how their mends are taken out again. */
export const MENDED_FAULTS = {
  /** The end of the stream was acted upon while the 401 before it was held back. */
  'held-401': {
    seed: 10,
    changes: [
      {
        file: 'proxy/upstream/http1/connection.ts',
        mended: '        state.end ??= end;\n',
        faulty: '        this.state = state.busy;\n        this.#endStream(state.busy.answer, end);\n',
      },
    ],
  },
  /** A connection that was given up in this turn was in the pool until it said 'close'. */
  'dead-lent': {
    seed: 360,
    changes: [
      {
        file: 'proxy/upstream/http1/connection.ts',
        mended: '    this.socket.destroy();\n    this.#options.onGone(this);\n',
        faulty: '    this.socket.destroy();\n',
      },
      {
        file: 'proxy/upstream/http1/connection.ts',
        mended:
          "    if (dead || idle.kind !== 'idle' || isSpent(idle, now) || hasPassed(this.#retiresAt, now)) {\n",
        faulty: "    if (!dead && (idle.kind !== 'idle' || isSpent(idle, now))) {\n",
      },
      {
        file: 'proxy/upstream/http1/connection.ts',
        mended: '    if (idle.doubtful || elapsedMs(idle.since, now) >= maxIdleMs) {\n',
        faulty: '    if (!dead && (idle.doubtful || elapsedMs(idle.since, now) >= maxIdleMs)) {\n',
      },
    ],
  },
  /** The token was taken when the request came, and written when its connection stood. */
  'token-taken-early': {
    seed: 1,
    changes: [
      {
        file: 'proxy/transaction/forwarding.ts',
        mended: '    const upstream = this.#acquire();\n    if (upstream.ready) this.#write(',
        faulty:
          '    Object.assign(this, { authorization });\n    const upstream = this.#acquire();\n    if (upstream.ready) this.#write(',
      },
      {
        file: 'proxy/transaction/forwarding.ts',
        mended:
          '    if (instead !== undefined) this.#upstream = instead;\n    const authorization = this.#token.current();\n',
        faulty:
          '    if (instead !== undefined) this.#upstream = instead;\n    const { authorization = this.#token.current() } = this as { authorization?: string };\n',
      },
    ],
  },
  /** After GOAWAY what the upstream had looked at was taken for what it had not. */
  'http2-goaway-misread': {
    seed: 90,
    changes: [
      {
        file: 'proxy/http2/connection.ts',
        mended: 'this.streams.limitTo(frame.lastStreamId)',
        faulty: 'this.streams.limitTo(0)',
      },
    ],
  },
  /** An answer that had begun was continued by another one, where the upstream then said that it had not looked at the request. */
  'http2-answer-continued': {
    seed: 360,
    changes: [
      {
        file: 'proxy/transaction/forwarding.ts',
        mended: '    if (this.#transaction.begun || next === undefined) {\n',
        faulty: '    if (next === undefined) {\n',
      },
      {
        file: 'proxy/upstream/http2/stream.ts',
        mended: "    this.user.onError(error, busy.anyResponse ? 'lost' : delivery);\n",
        faulty: '    this.user.onError(error, delivery);\n',
      },
    ],
  },
  /** An upstream that allowed more streams than before was not heard by those who waited for one. */
  'http2-raised-limit': {
    seed: 30,
    changes: [
      {
        file: 'proxy/upstream/http2/connection.ts',
        mended: '    this.#options.onAllowed(maxConcurrentStreams);\n    this.#offer();\n',
        faulty: '    this.#options.onAllowed(maxConcurrentStreams);\n',
      },
      {
        file: 'proxy/upstream/http2/connection.ts',
        mended: '  mayOpen(): void {\n    this.#offer();\n  }\n',
        faulty: '  mayOpen(): void {}\n',
      },
    ],
  },
} as const satisfies Record<string, Fault>;

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
  const { changes }: Fault = MENDED_FAULTS[fault];
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
