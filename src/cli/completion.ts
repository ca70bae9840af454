/** Shell scripts that complete commands, flags and their words, generated from the commands' tables. */

import type { Command } from '../config/command.ts';

type ByName = Readonly<Record<string, Command>>;

export const COMPLETIONS = { bash, zsh, fish } as const;

const SHELLS = ['bash', 'zsh', 'fish'];

/** Placeholders of flags that take a file or directory. */
const OF_FILES = new Set(['FILE', 'DIR', 'PATH']);

function wordsOf(commands: ByName): string[] {
  return [...Object.keys(commands), 'completion', 'help'];
}

function bash(commands: ByName): string {
  const words = Object.entries(commands).map(
    ([name, { settings, operandWords = [] }]) =>
      `    ${name}) words='${[
        ...operandWords,
        ...Object.keys(settings).map((flag) => `--${flag}`),
        '--help',
        '--version',
      ].join(' ')}' ;;`,
  );
  const values = valueCases(commands).map(
    ([pattern, kind]) =>
      `    ${pattern}) ${kind === 'files' ? 'COMPREPLY=($(compgen -f -- "$word"))' : `COMPREPLY=($(compgen -W '${kind}' -- "$word"))`}; return ;;`,
  );
  return `# token-sidecar completion bash > /etc/bash_completion.d/token-sidecar
_token_sidecar() {
  local word="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command=proxy words
  [[ $COMP_CWORD -gt 1 && "\${COMP_WORDS[1]}" != -* ]] && command="\${COMP_WORDS[1]}"
  case "$command $previous" in
${values.join('\n')}
    'completion completion') COMPREPLY=($(compgen -W '${SHELLS.join(' ')}' -- "$word")); return ;;
    'help help') COMPREPLY=($(compgen -W '${Object.keys(commands).join(' ')}' -- "$word")); return ;;
  esac
  case "$command" in
${words.join('\n')}
  esac
  if [[ $COMP_CWORD -eq 1 && "$word" != -* ]]; then
    COMPREPLY=($(compgen -W '${wordsOf(commands).join(' ')}' -- "$word"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  fi
}
complete -o filenames -F _token_sidecar token-sidecar`;
}

/** `'check --config'` with its words, or `files`. */
function valueCases(commands: ByName): [pattern: string, kind: string][] {
  return Object.entries(commands).flatMap(([name, { settings }]) =>
    Object.entries(settings).flatMap(([flag, { argument, words }]): [string, string][] => {
      if (words !== undefined) return [[`'${name} --${flag}'`, words.join(' ')]];
      return argument !== undefined && OF_FILES.has(argument) ? [[`'${name} --${flag}'`, 'files']] : [];
    }),
  );
}

function zsh(commands: ByName): string {
  const described = Object.entries(commands).map(
    ([name, { summary }]) => `    ${quote(`${name}:${escapeColon(summary)}`)}`,
  );
  const cases = Object.entries(commands).map(([name, { settings, operandWords }]) => {
    const specs = Object.entries(settings).map(([flag, { argument, description, words }]) => {
      const text = description.replace(/[[\]:]/g, (sign) => `\\${sign}`);
      if (argument === undefined) return quote(`--${flag}[${text}]`);
      const action = words !== undefined ? `(${words.join(' ')})` : OF_FILES.has(argument) ? '_files' : ' ';
      return quote(`--${flag}=[${text}]:${escapeColon(argument)}:${action}`);
    });
    const operand = operandWords === undefined ? [] : [quote(`1:operand:(${operandWords.join(' ')})`)];
    const all = [...operand, ...specs, quote('--help[describe the command]')];
    return `      ${name}) _arguments ${all.join(' ')} ;;`;
  });
  return `#compdef token-sidecar
# token-sidecar completion zsh > "\${fpath[1]}/_token-sidecar"
_token_sidecar() {
  local -a commands=(
${described.join('\n')}
    'completion:Print what makes a shell complete commands and flags'
    'help:Describe a command'
  )
  if (( CURRENT == 2 )) && [[ "$words[2]" != -* ]]; then
    _describe command commands
    return
  fi
  local command=proxy
  if [[ "$words[2]" != -* ]]; then
    command="$words[2]"
    shift words
    (( CURRENT-- ))
  fi
  case "$command" in
${cases.join('\n')}
      completion) _values shell ${SHELLS.join(' ')} ;;
      help) _describe command commands ;;
  esac
}
if [[ "$funcstack[1]" = _token_sidecar ]]; then _token_sidecar "$@"; else compdef _token_sidecar token-sidecar; fi`;
}

function fish(commands: ByName): string {
  const names = wordsOf(commands).join(' ');
  const lines = Object.entries(commands).flatMap(([name, { summary, settings, operandWords = [] }]) => [
    `complete -c token-sidecar -n '__fish_use_subcommand' -a ${name} -d ${quote(summary)}`,
    ...operandWords.map(
      (word) => `complete -c token-sidecar -n '__fish_seen_subcommand_from ${name}' -a ${word}`,
    ),
    ...Object.entries(settings).map(([flag, { argument, description, words }]) => {
      const takes =
        argument === undefined
          ? ''
          : words !== undefined
            ? ` -xa ${quote(words.join(' '))}`
            : OF_FILES.has(argument)
              ? ' -rF'
              : ' -x';
      return `complete -c token-sidecar -n '__fish_seen_subcommand_from ${name}' -l ${flag}${takes} -d ${quote(description)}`;
    }),
  ]);
  return [
    '# token-sidecar completion fish > ~/.config/fish/completions/token-sidecar.fish',
    'complete -c token-sidecar -f',
    `complete -c token-sidecar -n "not __fish_seen_subcommand_from ${names}" -a completion -d 'Print what makes a shell complete commands and flags'`,
    `complete -c token-sidecar -n '__fish_seen_subcommand_from completion' -a '${SHELLS.join(' ')}'`,
    `complete -c token-sidecar -n '__fish_seen_subcommand_from help' -a '${Object.keys(commands).join(' ')}'`,
    ...lines,
  ].join('\n');
}

function escapeColon(text: string): string {
  return text.replaceAll(':', '\\:');
}

/** In all three shells only the single quote is special between single quotes. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
