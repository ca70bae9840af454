import { COMMANDS } from '../../src/cli/all.ts';
import { commandNameOf, describeFailure, runCommandLine } from '../../src/cli/command-line.ts';
import { exitStatusOf } from '../../src/platform/exit-status.ts';
import type { Exit } from './run-command.ts';

/**
 * Runs a command to its end in the test's own process, which spares the start of a program: for what is told and how it ends.
 * No signal comes.
 * @throws what is no error of ours, which a program would crash of.
 */
export async function runHere(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
): Promise<Exit & { readonly stdout: string; readonly stderr: string }> {
  const output = { stdout: '', stderr: '' };
  const stream = (name: 'stdout' | 'stderr') => ({
    write(text: string) {
      output[name] += text;
    },
  });
  const ended = (code: number) => ({ code, signal: null, ...output });
  try {
    const code = await runCommandLine(args, COMMANDS, (rest) => ({
      args: rest,
      env,
      stdout: stream('stdout'),
      stderr: stream('stderr'),
      logOutput: { ...stream('stdout'), losses: { output: 0, repeated: 0 } },
      stdin: (async function* () {
        if (input !== '') yield Buffer.from(input);
      })(),
      shutdown: {
        signal: new AbortController().signal,
        request: () => undefined,
        takeHangups: () => undefined,
      },
    }));
    return ended(code);
  } catch (error) {
    const code = exitStatusOf(error);
    if (code === undefined) throw error;
    output.stderr += `token-sidecar: ${describeFailure(error, { command: commandNameOf(args, COMMANDS), colour: false })}\n`;
    return ended(code);
  }
}
