/** A process that is asked by lines: a question of JSON in, an answer of JSON out, in order. */

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export class AskedProcess {
  readonly #command: string;
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#command = command;
    this.#process = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    if (this.#process.stdout === null) throw new Error(`${command} has no output`);
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  async ask(question: object): Promise<unknown> {
    this.#process.stdin?.write(`${JSON.stringify(question)}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error(`${this.#command} ended`);
    return JSON.parse(value);
  }

  end(): void {
    this.#process.stdin?.end();
  }
}
