import type { Command } from '../src/config/command.ts';
import { EXIT_STATUSES } from '../src/platform/exit-status.ts';

type Settings = Command['settings'];

/** The page of commands and flags. A flag that means the same in two commands is told of once. */
export function commandReference(generated: string, commands: Readonly<Record<string, Command>>): string {
  const told = new Map<string, Settings>();
  const sections = Object.entries(commands).map(([name, { summary, operands, settings }]) => {
    const { rows, alike } = withoutRepetition(settings, told);
    told.set(name, settings);
    const usage = ['token-sidecar', name, operands, '[FLAGS]'].filter((part) => part !== undefined).join(' ');
    return [
      `## ${name}`,
      '',
      `${summary}.`,
      '',
      `    ${usage}`,
      ...(alike === '' ? [] : ['', alike]),
      ...(rows.length === 0 ? [] : ['', ...rows]),
    ].join('\n');
  });
  return [...head(generated), sections.join('\n\n'), ''].join('\n');
}

function withoutRepetition(
  settings: Settings,
  told: ReadonlyMap<string, Settings>,
): { rows: string[]; alike: string } {
  const rows = new Map(Object.keys(settings).map((flag) => [flag, rowOf(settings, flag)]));
  const sharedWith = (other: Settings): string[] =>
    Object.keys(other).filter((flag) => rows.get(flag) === rowOf(other, flag));
  const [nearest] = [...told].sort(([, a], [, b]) => sharedWith(b).length - sharedWith(a).length);
  const shared = nearest === undefined ? [] : sharedWith(nearest[1]);
  if (nearest === undefined || shared.length === 0) return { rows: [...rows.values()], alike: '' };
  const [name, other] = nearest;
  for (const flag of shared) rows.delete(flag);
  const all = Object.keys(other);
  const missing = all.filter((flag) => !shared.includes(flag));
  const but = missing.length === 0 ? '' : ` but ${familiesOf(missing, all).join(', ')}`;
  const which =
    missing.length <= 2
      ? `All flags of [${name}](#${name})${but}`
      : `As for [${name}](#${name}): ${familiesOf(shared, all).join(', ')}`;
  return { rows: [...rows.values()], alike: `${which}${rows.size === 0 ? '.' : '; and:'}` };
}

/** `--default-…` in place of all flags that begin so. */
function familiesOf(flags: readonly string[], all: readonly string[]): string[] {
  const familyOf = (flag: string): string => `${flag.split('-')[0]}-`;
  const isWhole = (family: string): boolean => {
    const members = all.filter((flag) => flag.startsWith(family));
    return members.length > 1 && members.every((flag) => flags.includes(flag));
  };
  return [
    ...new Set(flags.map((flag) => (isWhole(familyOf(flag)) ? `\`--${familyOf(flag)}…\`` : `\`--${flag}\``))),
  ];
}

function rowOf(settings: Settings, flag: string): string {
  const { argument, description, letter, default: standard } = settings[flag] as Settings[string];
  const short = letter === undefined ? '' : `\`-${letter}\`, `;
  const value = argument === undefined ? '' : ` ${argument}`;
  return `- ${short}\`--${flag}${value}\`${standard === undefined ? '' : ` (${standard})`}: ${description}`;
}

function head(generated: string): string[] {
  return [
    '# Commands and flags',
    '',
    generated,
    '',
    'Each flag has a variable (`--auth-url` is `TOKEN_SIDECAR_AUTH_URL`). Precedence: flag, variable, [configuration file](configuration.md),',
    'default (in parentheses). An empty variable counts as absent. `-h` is `--help`, which has examples, `-V` is `--version`.',
    '`token-sidecar completion bash`, `zsh` or `fish` prints completions for the shell.',
    '',
    `[Exit statuses](codes.md#exit-statuses): ${Object.entries(EXIT_STATUSES)
      .map(([status, { word }]) => `${status} ${word}`)
      .join(', ')}.`,
    'If `proxy` is stopped before it ever had a token (as when the startup probe gives up), it exits with 69, 77 or 78 and writes the',
    'reason to `--termination-log`. `kubectl describe pod` shows it.',
    '',
    'SIGTERM, SIGINT and SIGHUP drain what serves; a second one ends it at once. On SIGHUP `proxy` with a [configuration',
    'file](reloading.md) and without a terminal reads the file anew instead. `NODE_TLS_REJECT_UNAUTHORIZED` has no effect on token endpoints,',
    'collectors and the Kubernetes API.',
    '',
    'The log is JSON lines on standard output; on a terminal outside of Kubernetes, lines for a person, in colour unless `NO_COLOR` is set',
    'or `TERM` is `dumb`. If its reader stalls, 256 KiB wait, and further lines are lost.',
    '',
    'Warnings and errors of one text, route and error are one incident. Each cause (at most ten, and ten more within a minute) gets a',
    'line when it first comes, after 1, 5 and 30 minutes, and then every hour. The lines count `failures` and `lastedMs` since the',
    'incident began. A minute after the last one a line at level `info` says so. Failed renewals are told in the same way until',
    '`token obtained`, those between at level `debug`. `token_sidecar_log_lines_dropped_total` counts what is not printed.',
    '',
  ];
}
