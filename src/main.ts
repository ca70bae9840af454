#!/usr/bin/env node
/** Parses the command line, picks a command, and maps what it throws to an exit status. */

import { systemClock } from './clock.ts';
import type { Command, Shutdown } from './commands/command.ts';
import { listenForShutdown } from './commands/shutdown.ts';
import { describeSettings, didYouMean } from './config/settings.ts';
import { SidecarError } from './errors.ts';
import { describeError } from './log/error-description.ts';
import { LogOutput } from './log/output.ts';
import { openStandardOutput } from './log/standard-output.ts';
import { VERSION } from './version.ts';

/** Each command is a bundle of its own: the sidecar never loads what only another one needs. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  proxy: async () => (await import('./commands/proxy.ts')).proxy,
  issuer: async () => (await import('./commands/issuer.ts')).issuer,
  injector: async () => (await import('./commands/injector.ts')).injector,
  inject: async () => (await import('./commands/inject.ts')).inject,
  check: async () => (await import('./commands/check.ts')).check,
  wait: async () => (await import('./commands/wait.ts')).wait,
  demo: async () => (await import('./commands/demo.ts')).demo,
};

const DEFAULT_COMMAND = 'proxy';

/** How long a process that ends waits for a slow reader of its last lines. Milliseconds. */
const LAST_LINES_MS = 500;

let shutdown: Shutdown | undefined;
const logOutput = new LogOutput(openStandardOutput(process.stdout), systemClock);

async function main(argv: readonly string[]): Promise<number> {
  const [first] = argv;
  if (first === '--version') return print(VERSION);
  if (first === '--help' || first === 'help') return print(await overview());
  const isNamed = first !== undefined && !first.startsWith('-');
  const name = isNamed ? first : DEFAULT_COMMAND;
  const args = isNamed ? argv.slice(1) : argv;
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) {
    throw new SidecarError('usage', `unknown command ${name}${didYouMean(name, Object.keys(COMMANDS))}`);
  }
  const command = await load();
  if (args.includes('--help')) return print(describeCommand(name, command));
  if (args.includes('--version')) return print(VERSION);
  return await command.run({
    args,
    env: process.env,
    stdout: process.stdout,
    logOutput,
    stderr: process.stderr,
    stdin: process.stdin,
    /** Taken over by the commands that serve, as soon as they look; any other ends by the first signal as usual. */
    get shutdown() {
      shutdown ??= listenForShutdown(process);
      return shutdown;
    },
  });
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

async function overview(): Promise<string> {
  const commands = await Promise.all(
    Object.entries(COMMANDS).map(async ([name, load]) => `  ${name.padEnd(10)}${(await load()).summary}`),
  );
  return [
    `token-sidecar ${VERSION}: gives a pod OAuth 2.0 access tokens.`,
    '',
    'Usage: token-sidecar [COMMAND] [FLAGS]',
    '',
    'Commands:',
    ...commands,
    '',
    'token-sidecar COMMAND --help lists its flags. Each flag can be given as an environment variable instead.',
  ].join('\n');
}

function describeCommand(name: string, { summary, operands, settings }: Command): string {
  const usage = ['token-sidecar', name, operands, '[FLAGS]'].filter((part) => part !== undefined).join(' ');
  return `${summary}.\n\nUsage: ${usage}\n\nFlags:\n${describeSettings(settings)}`;
}

/** Errors are told apart by shape, not by class: each bundle has a copy of the class. */
function exitStatusOf(error: unknown): number | undefined {
  const { name, exitCode } = (error ?? {}) as Partial<SidecarError>;
  return name === 'SidecarError' ? exitCode : undefined;
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

// Node would open its debugger, through which whoever may connect reads all memory.
process.on('SIGUSR1', () => undefined);
process.stdout.on('error', onOutputError);
// There is nothing left to say it to.
process.stderr.on('error', () => undefined);
process.on('uncaughtException', crash);
process.on('exit', () => logOutput.flush(LAST_LINES_MS));

try {
  const status = await main(process.argv.slice(2));
  process.exitCode ??= status;
} catch (error) {
  const status = exitStatusOf(error);
  const text = status === undefined && error instanceof Error ? error.stack : (error as Error).message;
  process.stderr.write(`token-sidecar: ${text}\n`);
  if (status === 64) process.stderr.write('Try token-sidecar --help.\n');
  process.exitCode = status ?? 70;
}
