/**
 * Settings of a command, each a flag with an environment twin (`--auth-url`, `TOKEN_SIDECAR_AUTH_URL`). One table a
 * command drives parsing, `--help` and the reference page.
 */

import { SidecarError } from '../errors.ts';
import type { Problem } from './problems.ts';
import { MASK, shownValue } from './shown-text.ts';
import { didYouMean } from './suggestion.ts';
import { codeOfExpectation } from './value-codes.ts';
import type { ValueFormat } from './values.ts';

export interface Setting {
  /** Stands for the value in `--help`: `URL`, `PATH`. A setting without one is a switch. */
  readonly argument?: string;
  readonly description: string;
  /** As shown in `--help`; whoever reads the setting applies it. */
  readonly default?: string;
}

/** By flag name, without the dashes. */
export type Settings = Readonly<Record<string, Setting>>;

export interface GivenValue {
  /** Where it came from, for messages: `--auth-url` or `TOKEN_SIDECAR_AUTH_URL`. */
  readonly key: string;
  readonly text: string;
}

export type GivenValues<S extends Settings = Settings> = Readonly<
  Partial<Record<keyof S & string, GivenValue>>
>;

export interface CommandLine<S extends Settings> {
  readonly given: GivenValues<S>;
  readonly positionals: readonly string[];
}

export function environmentName(flag: string): string {
  return `TOKEN_SIDECAR_${flag.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * Reads flags (`--flag value`, `--flag=value`, switches) and, where a flag is absent, its environment twin. An empty
 * variable counts as absent. Variables we do not know are ignored: Kubernetes makes some of its own for a Service
 * named like us.
 * @throws {SidecarError} `usage` for an unknown or repeated flag, or a flag without its value.
 */
export function readSettings<S extends Settings>(
  settings: S,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): CommandLine<S> {
  const given: Record<string, GivenValue> = {};
  for (const flag of Object.keys(settings)) {
    const text = env[environmentName(flag)];
    if (text !== undefined && text !== '') given[flag] = { key: environmentName(flag), text };
  }

  const positionals: string[] = [];
  const seen = new Set<string>();
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] as string;
    if (!arg.startsWith('-') || arg === '-') {
      positionals.push(arg);
      continue;
    }
    const [, flag, inline] = /^--([a-z0-9-]+)(?:=(.*))?$/s.exec(arg) ?? [];
    const setting = flag !== undefined && Object.hasOwn(settings, flag) ? settings[flag] : undefined;
    if (flag === undefined || setting === undefined) {
      throw new SidecarError(
        'usage',
        `unknown flag ${arg.split('=')[0]}${didYouMean(flag ?? arg, Object.keys(settings), '--')}`,
      );
    }
    if (seen.has(flag)) throw new SidecarError('usage', `--${flag} is given more than once`);
    seen.add(flag);
    given[flag] = {
      key: `--${flag}`,
      text: inline ?? (setting.argument === undefined ? 'true' : valueAfter(flag)),
    };

    function valueAfter(name: string): string {
      const next = args[++index];
      if (next === undefined || next.startsWith('--')) {
        throw new SidecarError('usage', `--${name} needs a value: ${setting?.argument}`);
      }
      return next;
    }
  }
  return { given: given as GivenValues<S>, positionals };
}

/**
 * As `readSettings`, of a command that takes no other words: one would be a flag without its dashes, or the value of a switch.
 * @throws {SidecarError} `usage` for it, too.
 */
export function readFlags<S extends Settings>(
  settings: S,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): GivenValues<S> {
  const { given, positionals } = readSettings(settings, args, env);
  const [word] = positionals;
  if (word === undefined) return given;
  const isFile = Object.hasOwn(settings, 'config') && /\.(?:ya?ml|json)$/.test(word);
  const hint = isFile ? `; did you mean --config ${word}?` : didYouMean(word, Object.keys(settings), '--');
  throw new SidecarError('usage', `unexpected argument ${shownValue(word) ?? MASK}${hint}`);
}

/**
 * The parsed value of a setting, or undefined when it was not given or is wrong; what is wrong joins `problems`.
 */
export function readValue<T>(
  value: GivenValue | undefined,
  format: ValueFormat<T>,
  problems: Problem[],
): T | undefined {
  if (value === undefined) return undefined;
  const parsed = format.parse(value.text);
  if (parsed === undefined) {
    const { expected } = format;
    const code = codeOfExpectation(expected);
    problems.push({ key: value.key, value: value.text, expected, ...(code === undefined ? {} : { code }) });
  }
  return parsed;
}

/** The settings part of a command's `--help`. */
export function describeSettings(settings: Settings): string {
  return Object.entries(settings)
    .map(([flag, { argument, description, default: standard }]) => {
      const head = `  --${flag}${argument === undefined ? '' : ` ${argument}`}`;
      const facts = [environmentName(flag), ...(standard === undefined ? [] : [`default ${standard}`])].join(
        ', ',
      );
      return `${head}\n      ${description} (${facts})`;
    })
    .join('\n');
}
