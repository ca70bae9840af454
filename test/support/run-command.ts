import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export const MAIN = join(import.meta.dirname, '../../src/main.ts');

/**
 * What a program needs of this environment; all else it gets from its test. It finds its code compiled by the one before:
 * compiling is most of what a start costs.
 */
export const SURROUNDINGS: Readonly<Record<string, string>> = {
  PATH: process.env['PATH'] ?? '',
  NODE_COMPILE_CACHE: join(import.meta.dirname, '../../.cache/compiled'),
};

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The program as its users run it: a process with arguments, an environment and an exit status. */
export class RunningCommand {
  readonly process: ChildProcess;
  readonly exited: Promise<Exit>;
  stdout = '';
  stderr = '';
  #waiting: (() => void)[] = [];

  /**
   * @param through a command that runs the one it is given: `unshare …`.
   * @param main a built program in place of the sources.
   */
  constructor(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    through: readonly string[] = [],
    main = MAIN,
  ) {
    const [command = '', ...rest] = [...through, process.execPath, main, ...args];
    this.process = spawn(command, rest, {
      env: { ...SURROUNDINGS, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => this.#take('stdout', text));
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => this.#take('stderr', text));
    this.exited = new Promise((resolve) => {
      this.process.once('close', (code, signal) => {
        resolve({ code, signal });
        for (const wake of this.#waiting.splice(0)) wake();
      });
    });
    onTestFinished(async () => {
      if (this.process.exitCode === null) this.process.kill('SIGKILL');
      await this.exited;
    });
  }

  /** Waits for a match in standard output; fails if the process ends without one. */
  async output(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.stdout);
      if (match !== null) return match;
      if (this.process.exitCode !== null) {
        throw new Error(
          `ended with ${this.process.exitCode} before ${pattern}:\n${this.stdout}${this.stderr}`,
        );
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #take(stream: 'stdout' | 'stderr', text: string): void {
    this[stream] += text;
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

/** Runs a command to its end. */
export async function runToEnd(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
): Promise<Exit & { readonly stdout: string; readonly stderr: string }> {
  const running = new RunningCommand(args, env);
  running.process.stdin?.end(input);
  const exit = await running.exited;
  return { ...exit, stdout: running.stdout, stderr: running.stderr };
}
