#!/usr/bin/env node
/** Parses the command line, picks a command, and maps what it throws to an exit status. */

import type { Command } from './commands/command.ts';
import { listenForShutdown } from './commands/shutdown.ts';
import { describeSettings, didYouMean } from './config/settings.ts';
import { SidecarError } from './errors.ts';
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
    stderr: process.stderr,
    stdin: process.stdin,
    shutdown: listenForShutdown(process),
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

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const status = exitStatusOf(error);
  const text = status === undefined && error instanceof Error ? error.stack : (error as Error).message;
  process.stderr.write(`token-sidecar: ${text}\n`);
  if (status === 64) process.stderr.write('Try token-sidecar --help.\n');
  process.exitCode = status ?? 70;
}
