/** The other oracle: PyPI's h2 and hpack in a Python process. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { FuzzCase } from './connection-grammar.ts';
import { canonicalHead, METHODS_ASKED, newTranscript, noteResets, type Transcript } from './transcript.ts';

const PACKAGES = join(import.meta.dirname, '../../../../.cache/python-h2');
const PINNED = ['h2==4.4.1', 'hpack==4.2.0', 'hyperframe==6.1.0'];

/** Installs the packages into .cache/python-h2, unless they are there. */
export function installPythonH2(): void {
  if (existsSync(join(PACKAGES, 'h2'))) return;
  execFileSync('python3', ['-m', 'pip', 'install', '--quiet', '--target', PACKAGES, ...PINNED], {
    stdio: 'inherit',
  });
}

interface Answer {
  readonly messages: Record<
    string,
    { heads: string[][]; data: string; trailers: string[] | null; ended: boolean }
  >;
  readonly refusal: string | null;
  readonly said: string;
}

export class PythonH2 {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor() {
    const script = join(import.meta.dirname, 'h2_oracle.py');
    const env = { ...process.env, PYTHONPATH: PACKAGES };
    this.#process = spawn('python3', [script], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.#process.stdout === null) throw new Error('python3 has no output');
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  async transcribe({ sender, frames }: FuzzCase): Promise<Transcript> {
    const hex = frames.map((frame) => frame.toString('hex'));
    const answer = (await this.#ask({ sender, methods: METHODS_ASKED, frames: hex })) as Answer;
    const transcript = newTranscript();
    for (const [id, message] of Object.entries(answer.messages)) {
      transcript.messages.set(Number(id), {
        ...message,
        heads: message.heads.map(canonicalHead),
        trailers: message.trailers === null ? undefined : JSON.stringify(message.trailers),
      });
    }
    transcript.refusal = answer.refusal ?? undefined;
    noteResets(transcript, Buffer.from(answer.said, 'hex'));
    return transcript;
  }

  /** What hpack makes of blocks that share a table: fields, or the name of an error in the place of the last. */
  async decode(blocks: readonly Buffer[]): Promise<(string[] | string)[]> {
    return (await this.#ask({ blocks: blocks.map((block) => block.toString('hex')) })) as (
      | string[]
      | string
    )[];
  }

  end(): void {
    this.#process.stdin?.end();
  }

  async #ask(question: object): Promise<unknown> {
    this.#process.stdin?.write(`${JSON.stringify(question)}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error('python3 ended');
    return JSON.parse(value as string);
  }
}
