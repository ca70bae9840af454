import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export interface RunOptions {
  /** Written to standard input. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/**
 * Runs a program to its end and gives what it printed to standard output.
 * @throws with what it printed to standard error.
 */
export async function run(
  program: string,
  args: readonly string[],
  { input, env, timeoutMs = 300_000 }: RunOptions = {},
): Promise<string> {
  const running = execute(program, args, {
    env: { ...process.env, ...env },
    maxBuffer: 64 * 1024 * 1024,
    timeout: timeoutMs,
  });
  running.child.stdin?.on('error', () => undefined);
  running.child.stdin?.end(input ?? '');
  try {
    return (await running).stdout;
  } catch (error) {
    const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string };
    throw new Error(`${program} ${args.join(' ')}: ${stderr.trim() || stdout.trim() || String(error)}`, {
      cause: error,
    });
  }
}

/** Asks until it is so. @throws when it is not within `seconds`, with the last reason. */
export async function eventually<Value>(
  what: string,
  seconds: number,
  look: () => Promise<Value | undefined | false>,
): Promise<Value> {
  const endsAt = Date.now() + seconds * 1000;
  let reason: unknown;
  for (;;) {
    try {
      const found = await look();
      if (found !== undefined && found !== false) return found;
      reason = undefined;
    } catch (error) {
      reason = error;
    }
    if (Date.now() > endsAt) {
      const because = reason instanceof Error ? `: ${reason.message}` : '';
      throw new Error(`not within ${seconds} s: ${what}${because}`, { cause: reason });
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}
