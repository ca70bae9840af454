/** Parses the command line, picks a command, and maps what it throws to an exit status. */

import { systemClock } from './clock.ts';
import { COMMANDS } from './commands/all.ts';
import type { CommandContext, Shutdown } from './commands/command.ts';
import { commandNameOf, describeFailure, exitStatusOf, runCommandLine } from './commands/command-line.ts';
import { listenForShutdown } from './commands/shutdown.ts';
import { describeError } from './log/error-description.ts';
import { LogOutput } from './log/output.ts';
import { readableLine } from './log/readable-lines.ts';
import { openStandardOutput } from './log/standard-output.ts';

/** How long a process that ends waits for a slow reader of its last lines. Milliseconds. */
const LAST_LINES_MS = 500;

let shutdown: Shutdown | undefined;
const logOutput = new LogOutput(
  openStandardOutput(process.stdout),
  systemClock,
  isWatched() ? (line) => readableLine(line, { colour: isColourful(process.env) }) : undefined,
);

/** What a command gets of this process. */
function contextOf(args: readonly string[]): CommandContext {
  return {
    args,
    env: process.env,
    stdout: process.stdout,
    colour: process.stdout.isTTY === true && isColourful(process.env),
    logOutput,
    stderr: process.stderr,
    stdin: process.stdin,
    /** Taken over by the commands that serve, as soon as they look; any other ends by the first signal as usual. */
    get shutdown() {
      shutdown ??= listenForShutdown(process);
      return shutdown;
    },
  };
}

/** Whether a person reads the log. A container with `tty: true` has a terminal that a collector reads. */
function isWatched(): boolean {
  return process.stdout.isTTY === true && process.env['KUBERNETES_SERVICE_HOST'] === undefined;
}

/** NO_COLOR (no-color.org) and dumb terminals ask for none. */
function isColourful({ NO_COLOR = '', TERM }: NodeJS.ProcessEnv): boolean {
  return NO_COLOR === '' && TERM !== 'dumb';
}

/** What nobody foresaw. Node's own report would print all properties of the error, and with them what they hold. */
function crash(error: unknown): never {
  if (logOutput.used) logOutput.write(fatalLine(error));
  process.stderr.write(`token-sidecar: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(70);
}

/** As the logger writes it, which is loaded with the commands alone. */
function fatalLine(error: unknown): string {
  const time = new Date(systemClock.now().wallMs).toISOString();
  return `${JSON.stringify({ level: 'fatal', time, err: describeError(error), msg: 'crashed' })}\n`;
}

/** Output that is not the log's: a reader that has left is content, a full disk is an error. */
function onOutputError(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return;
  process.stderr.write(`token-sidecar: standard output: ${error.message}\n`);
  process.exitCode = 70;
}

// A checkout starts here, without the launcher, which does the same.
process.on('SIGUSR1', () => undefined);
process.stdout.on('error', onOutputError);
// There is nothing left to say it to.
process.stderr.on('error', () => undefined);
process.on('uncaughtException', crash);
process.on('exit', () => logOutput.flush(LAST_LINES_MS));

try {
  const status = await runCommandLine(process.argv.slice(2), COMMANDS, contextOf);
  process.exitCode ??= status;
  // What a command has given up waiting for, such as the lookup of a name, cannot be cancelled: it ends with the program.
  // What is written goes out before, and a failure of that is told.
  const end = (): void => void setImmediate(() => process.exit());
  if (process.stdout.writableLength === 0) end();
  else process.stdout.write('', end);
} catch (error) {
  const command = commandNameOf(process.argv.slice(2), COMMANDS);
  const colour = process.stderr.isTTY === true && isColourful(process.env);
  process.stderr.write(`token-sidecar: ${describeFailure(error, { command, colour })}\n`);
  process.exitCode = exitStatusOf(error) ?? 70;
}
