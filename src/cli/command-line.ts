import type { Command, CommandContext } from '../config/command.ts';
import { reportProblems } from '../config/report.ts';
import { describeSettings } from '../config/settings.ts';
import { didYouMean } from '../config/suggestion.ts';
import { SidecarError } from '../platform/errors.ts';
import { EXIT_STATUS_OF, exitStatusOf } from '../platform/exit-status.ts';
import { MASK, redactedValue } from '../platform/log/redacted-text.ts';
import type { Problem } from '../platform/problems.ts';
import { REVISION, VERSION } from '../platform/version.ts';

/** Each is loaded only when it is run or described. */
type Commands = Readonly<Record<string, () => Promise<Command>>>;

const DEFAULT_COMMAND = 'proxy';

/** What this file does itself. */
const OWN: Readonly<Record<'completion' | 'help', Omit<Command, 'run'>>> = {
  completion: {
    summary: 'Print what makes bash, zsh or fish complete commands and flags',
    operands: 'SHELL',
    settings: {},
    examples: [
      ['token-sidecar completion bash > /etc/bash_completion.d/token-sidecar', 'for all users of bash'],
      ['source <(token-sidecar completion bash)', 'for this shell'],
    ],
  },
  help: {
    summary: 'Describe a command',
    operands: '[COMMAND]',
    settings: {},
    examples: [['token-sidecar help check', 'as token-sidecar check --help']],
  },
};

/**
 * @returns the exit status.
 * @throws {SidecarError} `usage`, or what the command throws.
 */
export async function runCommandLine(
  argv: readonly string[],
  commands: Commands,
  contextOf: (args: readonly string[]) => CommandContext,
): Promise<number> {
  const print = (text: string): number => {
    contextOf(argv).stdout.write(`${text}\n`);
    return 0;
  };
  const [first, second] = argv;
  const asked = wordsBeforeEnd(argv);
  if (first === 'help' && second !== undefined && !isHelp(second)) {
    return print(await describe(second, commands));
  }
  if (first !== undefined && (isHelp(first) || first === 'help')) return print(await overview(commands));
  const isNamed = first !== undefined && !first.startsWith('-');
  if (!isNamed && asked.some(isVersion)) return print(version());
  const name = isNamed ? first : DEFAULT_COMMAND;
  if (asked.some(isHelp)) return print(await describe(name, commands));
  if (first === 'completion') return print(await completionFor(second, argv.slice(2), commands));
  const command = await load(name, commands);
  if (asked.some(isVersion)) return print(version());
  return await command.run(contextOf(isNamed ? argv.slice(1) : argv));
}

const isHelp = (word: string): boolean => word === '--help' || word === '-h';
const isVersion = (word: string): boolean => word === '--version' || word === '-V';

function wordsBeforeEnd(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return end === -1 ? argv : argv.slice(0, end);
}

async function load(name: string, commands: Commands): Promise<Command> {
  const found = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (found !== undefined) return await found();
  const known = Object.keys({ ...commands, ...OWN });
  throw new SidecarError('usage', `unknown command ${redactedValue(name) ?? MASK}${didYouMean(name, known)}`);
}

function version(): string {
  return `token-sidecar ${VERSION} (revision ${REVISION}, Node ${process.versions.node})`;
}

async function completionFor(
  shell: string | undefined,
  others: readonly string[],
  commands: Commands,
): Promise<string> {
  const { COMPLETIONS } = await import('./completion.ts');
  if (shell === undefined || !Object.hasOwn(COMPLETIONS, shell) || others.length > 0) {
    throw new SidecarError('usage', `completion takes one word: ${Object.keys(COMPLETIONS).join(', ')}`);
  }
  const all = await Promise.all(
    Object.entries(commands).map(async ([name, loadCommand]) => [name, await loadCommand()] as const),
  );
  return COMPLETIONS[shell as keyof typeof COMPLETIONS](Object.fromEntries(all));
}

async function overview(commands: Commands): Promise<string> {
  const loaded = await Promise.all(
    Object.entries(commands).map(async ([name, loadCommand]) => [name, await loadCommand()] as const),
  );
  const all = { ...Object.fromEntries(loaded), ...OWN };
  return [
    `token-sidecar ${VERSION}: gives a pod OAuth 2.0 access tokens.`,
    '',
    'Usage: token-sidecar [COMMAND] [FLAGS]',
    '',
    'Commands:',
    ...Object.entries(all).map(([name, { summary }]) => `  ${name.padEnd(12)}${summary}`),
    '',
    'token-sidecar COMMAND --help lists its flags. Each flag can be given as an environment variable instead.',
    '-h stands for --help, -V for --version.',
  ].join('\n');
}

async function describe(name: string, commands: Commands): Promise<string> {
  const own = Object.hasOwn(OWN, name) ? OWN[name as keyof typeof OWN] : undefined;
  const { summary, operands, settings, examples } = own ?? (await load(name, commands));
  const hasFlags = Object.keys(settings).length > 0;
  const usage = ['token-sidecar', name, operands, hasFlags ? '[FLAGS]' : undefined];
  const shown = examples.map(([line, does]) => `  ${line}\n      ${does}`);
  return [
    `${summary}.`,
    `Usage: ${usage.filter((part) => part !== undefined).join(' ')}`,
    `Examples:\n${shown.join('\n')}`,
    ...(hasFlags ? [`Flags:\n${describeSettings(settings)}`] : []),
  ].join('\n\n');
}

/** Undefined for an unknown command, or one that this file handles itself. */
export function commandNameOf([first]: readonly string[], commands: Commands): string | undefined {
  if (first === undefined || first.startsWith('-')) return DEFAULT_COMMAND;
  return Object.hasOwn(commands, first) ? first : undefined;
}

interface FailedCommand {
  readonly command: string | undefined;
  readonly colour: boolean;
}

/** A port that another program holds is no mistake in the configuration. */
function headingOf(problems: readonly Problem[]): string {
  const isOfAddress = ({ code }: Problem): boolean => code?.startsWith('address_') ?? false;
  return problems.every(isOfAddress) ? 'it cannot listen' : 'the configuration is not valid';
}

/** What a person reads about the error that ended a command. */
export function describeFailure(error: unknown, { command, colour }: FailedCommand): string {
  const status = exitStatusOf(error);
  if (status === undefined) return error instanceof Error ? (error.stack ?? error.message) : String(error);
  const { message, problems = [] } = error as Error & { readonly problems?: readonly Problem[] };
  if (problems.length > 0) return `${headingOf(problems)}\n\n${reportProblems(problems, { colour })}`;
  if (status !== EXIT_STATUS_OF.usage) return message;
  return `${message}\nTry ${['token-sidecar', command, '--help'].filter((word) => word !== undefined).join(' ')}.`;
}
