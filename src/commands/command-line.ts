/** Picks a command by the command line, and puts into words what ends it. */

import type { Problem } from '../config/problems.ts';
import { reportProblems } from '../config/report.ts';
import { describeSettings } from '../config/settings.ts';
import { didYouMean } from '../config/suggestion.ts';
import { SidecarError } from '../errors.ts';
import { VERSION } from '../version.ts';
import type { Command, CommandContext } from './command.ts';

/** By name; each is loaded when it is run or described. */
export type Commands = Readonly<Record<string, () => Promise<Command>>>;

const DEFAULT_COMMAND = 'proxy';

/**
 * @returns the exit status.
 * @throws {SidecarError} `usage`, or what the command throws.
 */
export async function runCommandLine(
  argv: readonly string[],
  commands: Commands,
  contextOf: (args: readonly string[]) => CommandContext,
): Promise<number> {
  const [first] = argv;
  const print = (text: string): number => {
    contextOf(argv).stdout.write(`${text}\n`);
    return 0;
  };
  if (first === '--version') return print(VERSION);
  if (first === '--help' || first === 'help') return print(await overview(commands));
  const isNamed = first !== undefined && !first.startsWith('-');
  const name = isNamed ? first : DEFAULT_COMMAND;
  const args = isNamed ? argv.slice(1) : argv;
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load === undefined) {
    throw new SidecarError('usage', `unknown command ${name}${didYouMean(name, Object.keys(commands))}`);
  }
  const command = await load();
  if (args.includes('--help')) return print(describeCommand(name, command));
  if (args.includes('--version')) return print(VERSION);
  return await command.run(contextOf(args));
}

async function overview(commands: Commands): Promise<string> {
  const lines = await Promise.all(
    Object.entries(commands).map(async ([name, load]) => `  ${name.padEnd(10)}${(await load()).summary}`),
  );
  return [
    `token-sidecar ${VERSION}: gives a pod OAuth 2.0 access tokens.`,
    '',
    'Usage: token-sidecar [COMMAND] [FLAGS]',
    '',
    'Commands:',
    ...lines,
    '',
    'token-sidecar COMMAND --help lists its flags. Each flag can be given as an environment variable instead.',
  ].join('\n');
}

function describeCommand(name: string, { summary, operands, settings }: Command): string {
  const usage = ['token-sidecar', name, operands, '[FLAGS]'].filter((part) => part !== undefined).join(' ');
  return `${summary}.\n\nUsage: ${usage}\n\nFlags:\n${describeSettings(settings)}`;
}

/** Errors are told apart by shape, not by class: each bundle has a copy of the class. */
export function exitStatusOf(error: unknown): number | undefined {
  const { name, exitCode } = (error ?? {}) as Partial<SidecarError>;
  return name === 'SidecarError' ? exitCode : undefined;
}

/** What a person reads of an error that ends a command. */
export function describeFailure(error: unknown, { colour }: { readonly colour: boolean }): string {
  const status = exitStatusOf(error);
  if (status === undefined) return error instanceof Error ? (error.stack ?? error.message) : String(error);
  const { message, problems = [] } = error as Error & { readonly problems?: readonly Problem[] };
  if (problems.length > 0) return `the configuration is not valid\n\n${reportProblems(problems, { colour })}`;
  return status === 64 ? `${message}\nTry token-sidecar --help.` : message;
}
