/** Parses the command line, picks a command, and maps what it throws to an exit status. */

import './platform/process/thread-pool.ts';
import { COMMANDS } from './cli/all.ts';
import { commandNameOf, describeFailure, runCommandLine } from './cli/command-line.ts';
import type { CommandContext } from './config/command.ts';
import { EXIT_STATUS_OF, exitStatusOf } from './platform/exit-status.ts';
import { LogOutput, openStandardOutput } from './platform/log/output.ts';
import { readableLine } from './platform/log/readable-lines.ts';
import { describeError } from './platform/log/redaction.ts';
import { listenForShutdown, type Shutdown } from './platform/process/shutdown.ts';
import { systemClock } from './platform/time/clock.ts';

/** For a slow reader of the last lines. */
const LAST_LINES_MS = 500;

let shutdown: Shutdown | undefined;
const logOutput = new LogOutput(
  openStandardOutput(process.stdout),
  systemClock,
  isWatched() ? (line) => readableLine(line, { colour: isColourful(process.env) }) : undefined,
);

function contextOf(args: readonly string[]): CommandContext {
  return {
    args,
    env: process.env,
    stdout: process.stdout,
    colour: process.stdout.isTTY === true && isColourful(process.env),
    logOutput,
    stderr: process.stderr,
    stdin: process.stdin,
    /** Serving commands take over the signals by reading this. Without it the first signal ends the process. */
    get shutdown() {
      shutdown ??= listenForShutdown(process);
      return shutdown;
    },
  };
}

/** A container with `tty: true` has a terminal that a collector reads. */
function isWatched(): boolean {
  return process.stdout.isTTY === true && process.env['KUBERNETES_SERVICE_HOST'] === undefined;
}

/** See no-color.org. */
function isColourful({ NO_COLOR = '', TERM }: NodeJS.ProcessEnv): boolean {
  return NO_COLOR === '' && TERM !== 'dumb';
}

/** Node's own report would print all properties of the error, secrets included. */
function crash(error: unknown): never {
  if (logOutput.used) logOutput.write(fatalLine(error));
  process.stderr.write(`token-sidecar: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(EXIT_STATUS_OF.internal);
}

/** The logger is loaded only with the commands. */
function fatalLine(error: unknown): string {
  const time = new Date(systemClock.now().wallMs).toISOString();
  return `${JSON.stringify({ level: 'fatal', time, err: describeError(error), msg: 'crashed' })}\n`;
}

/** For output other than the log: EPIPE is fine, a full disk is an error. */
function onOutputError(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return;
  process.stderr.write(`token-sidecar: standard output: ${error.message}\n`);
  process.exitCode = EXIT_STATUS_OF.internal;
}

// A checkout starts here, without the launcher.
process.on('SIGUSR1', () => undefined);
process.stdout.on('error', onOutputError);
process.stderr.on('error', () => undefined);
process.on('uncaughtException', crash);
process.on('exit', () => logOutput.flush(LAST_LINES_MS));

try {
  const status = await runCommandLine(process.argv.slice(2), COMMANDS, contextOf);
  process.exitCode ??= status;
  // Work such as a name lookup cannot be cancelled, so it ends with the program. Output is written first, so that its
  // failure is reported.
  const end = (): void => void setImmediate(() => process.exit());
  if (process.stdout.writableLength === 0) end();
  else process.stdout.write('', end);
} catch (error) {
  const command = commandNameOf(process.argv.slice(2), COMMANDS);
  const colour = process.stderr.isTTY === true && isColourful(process.env);
  process.stderr.write(`token-sidecar: ${describeFailure(error, { command, colour })}\n`);
  process.exitCode = exitStatusOf(error) ?? EXIT_STATUS_OF.internal;
}
