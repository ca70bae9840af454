/** The issuer as a command, in this process. */

import { onTestFinished } from 'vitest';
import { issuer } from '../../../src/issuer/program.ts';

export type LogLine = Readonly<Record<string, unknown>>;

/** Runs the command; `logged` resolves with the first line that has the message and suits. */
export function runIssuerCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
) {
  const abort = new AbortController();
  const seen: LogLine[] = [];
  const waiting: { readonly suits: (line: LogLine) => boolean; readonly resolve: (line: LogLine) => void }[] =
    [];
  let output = '';
  const stdout = {
    write(text: string): void {
      output += text;
      if (!text.startsWith('{')) return;
      const line = JSON.parse(text) as LogLine;
      seen.push(line);
      for (const { suits, resolve } of waiting) if (suits(line)) resolve(line);
    },
  };
  const status = issuer.run({
    args,
    env,
    stdout,
    logOutput: { ...stdout, losses: { output: 0, repeated: 0 } },
    stderr: { write: () => undefined },
    stdin: (async function* () {
      yield Buffer.from(input);
    })(),
    shutdown: { signal: abort.signal, request: () => abort.abort(), takeHangups: () => undefined },
  });
  onTestFinished(async () => {
    abort.abort();
    await status.catch(() => undefined);
  });
  return {
    status,
    stop: () => abort.abort(),
    output: () => output,
    logged(message: string, also: (line: LogLine) => boolean = () => true): Promise<LogLine> {
      const suits = (line: LogLine): boolean => line['msg'] === message && also(line);
      const line = seen.find(suits);
      if (line !== undefined) return Promise.resolve(line);
      return new Promise((resolve) => waiting.push({ suits, resolve }));
    },
  };
}
