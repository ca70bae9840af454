/**
 * Flags and their environment twins (`TOKEN_SIDECAR_AUTH_URL`). A command's table drives parsing, `--help`
 * and the reference page.
 */

import { dirname } from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { SidecarError } from '../platform/errors.ts';
import { MASK, redactedValue } from '../platform/log/redacted-text.ts';
import type { Problem } from '../platform/problems.ts';
import type { CertificateFiles } from '../platform/tls/certificate-files.ts';
import { correctedText } from './corrections.ts';
import { didYouMean, nearestName } from './suggestion.ts';
import { codeOfExpectation, type ValueFormat } from './values.ts';

interface Setting {
  /** Stands for the value in `--help`. A setting without one is a switch. */
  readonly argument?: string;
  readonly description: string;
  /** `f` for `-f`. */
  readonly letter?: string;
  /** Shells complete them. */
  readonly words?: readonly string[];
  /** Only shown in `--help`: readers apply it. */
  readonly default?: string;
}

/** Without the dashes. */
export type Settings = Readonly<Record<string, Setting>>;

export interface GivenValue {
  /** Names the setting in messages. */
  readonly key: string;
  readonly text: string;
}

export type GivenValues<S extends Settings = Settings> = Readonly<
  Partial<Record<keyof S & string, GivenValue>>
>;

interface CommandLine<S extends Settings> {
  readonly given: GivenValues<S>;
  readonly positionals: readonly string[];
}

export function environmentName(flag: string): string {
  return `TOKEN_SIDECAR_${flag.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * Flags win over the environment. Empty variables count as absent.
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
  // Its errors would suggest no flag.
  const { tokens } = parseArgs({
    args: [...args],
    options: optionsOf(settings),
    strict: false,
    tokens: true,
  });
  const positionals: string[] = [];
  const seen = new Set<string>();
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    const setting = Object.hasOwn(settings, name) ? settings[name] : undefined;
    if (setting === undefined) {
      throw new SidecarError(
        'usage',
        `unknown flag ${rawName}${didYouMean(name, Object.keys(settings), '--')}`,
      );
    }
    if (seen.has(name)) throw new SidecarError('usage', `--${name} is given more than once`);
    seen.add(name);
    // A flag was taken as the value.
    const isFlag = !token.inlineValue && value?.startsWith('--') === true;
    if (setting.argument !== undefined && (value === undefined || isFlag)) {
      throw new SidecarError('usage', `--${name} needs a value: ${setting.argument}`);
    }
    given[name] = { key: `--${name}`, text: value ?? 'true' };
  }
  return { given: given as GivenValues<S>, positionals };
}

function optionsOf(settings: Settings): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries(settings).map(([flag, { argument, letter }]) => [
      flag,
      {
        type: argument === undefined ? 'boolean' : 'string',
        multiple: true,
        ...(letter === undefined ? {} : { short: letter }),
      },
    ]),
  );
}

/**
 * For a command that takes no other words.
 * @throws {SidecarError} `usage`, also for other words.
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
  throw new SidecarError('usage', `unexpected argument ${redactedValue(word) ?? MASK}${hint}`);
}

/** Undefined if absent, or wrong, which joins `problems`. */
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
    const corrected = correctedText(value.text, expected, value.key);
    problems.push({
      key: value.key,
      value: value.text,
      expected,
      ...(code === undefined ? {} : { code }),
      ...(corrected === undefined ? {} : { remedy: `Write ${written(value.key, corrected)}.` }),
    });
  }
  return parsed;
}

/** As on a command line, in the environment, or in a file. */
function written(key: string, text: string): string {
  if (key.startsWith('--')) return `${key} ${text}`;
  return key.startsWith(PREFIX) ? `${key}=${text}` : `${key.split('.').at(-1)}: ${text}`;
}

export function describeSettings(settings: Settings): string {
  return Object.entries(settings)
    .map(([flag, { argument, description, letter, default: standard }]) => {
      const short = letter === undefined ? '' : `-${letter}, `;
      const head = `  ${short}--${flag}${argument === undefined ? '' : ` ${argument}`}`;
      const facts = [environmentName(flag), ...(standard === undefined ? [] : [`default ${standard}`])].join(
        ', ',
      );
      return `${head}\n      ${description} (${facts})`;
    })
    .join('\n');
}

const PREFIX = 'TOKEN_SIDECAR_';

/** Kubernetes sets them for a Service: `TOKEN_SIDECAR_PORT_443_TCP_ADDR`. */
const OF_SERVICES =
  /^TOKEN_SIDECAR_(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/** They are misspelt, or meant for another command. */
export function unknownVariables(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
): Problem[] {
  const known = Object.keys(settings).map(environmentName);
  const names = Object.keys(env).filter(
    (name) => name.startsWith(PREFIX) && env[name] !== '' && !known.includes(name) && !OF_SERVICES.test(name),
  );
  return names.sort().map((name) => {
    // The prefix would make all names alike.
    const own = name.slice(PREFIX.length);
    const nearest = nearestName(
      own,
      known.map((one) => one.slice(PREFIX.length)),
    );
    const problem = { key: name, code: 'unknown_variable' as const };
    if (nearest === undefined) return { ...problem, expected: 'a variable that this command has' };
    return {
      ...problem,
      expected: `a variable that this command has; did you mean "${PREFIX}${nearest}"?`,
      remedy: `Write ${PREFIX}${nearest} if that is what you mean.`,
      meant: PREFIX + nearest,
    };
  });
}

/** Undefined, with a problem, if directories differ. */
export function readCertificatePair(
  cert: GivenValue,
  key: GivenValue,
  problems: Problem[],
): CertificateFiles | undefined {
  if (dirname(cert.text) !== dirname(key.text)) {
    problems.push({ key: key.key, value: key.text, expected: `a file in the directory of ${cert.key}` });
    return undefined;
  }
  return { certFile: cert.text, keyFile: key.text, key: cert.key };
}
