/** Programs run as processes of their own, stopped by their handle. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface RunningProgram {
  /** Resolves with the first match on any line of output, past or to come. */
  output(pattern: RegExp): Promise<RegExpExecArray>;
  /** @throws with its last lines of output when it has ended by itself. */
  assertRunning(): void;
  stop(): Promise<void>;
}

export function start(command: string, args: readonly string[]): RunningProgram {
  const child: ChildProcess = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: string[] = [];
  const listeners = new Set<() => void>();
  const ended = once(child, 'close').then(() => {
    for (const listener of listeners) listener();
  });
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      for (const listener of listeners) listener();
    });
  }

  function assertRunning(): void {
    if (child.exitCode === null && child.signalCode === null) return;
    const how = child.signalCode ?? `status ${child.exitCode}`;
    throw new Error(`${[command, ...args].join(' ')} ended (${how}):\n${lines.slice(-20).join('\n')}`);
  }

  return {
    output: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          for (const line of lines) {
            const match = pattern.exec(line);
            if (match === null) continue;
            listeners.delete(look);
            resolve(match);
            return;
          }
          try {
            assertRunning();
          } catch (error) {
            reject(error);
          }
        };
        listeners.add(look);
        look();
      }),
    assertRunning,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
