import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runHere } from '../support/run-here.ts';

/** The scripts that the program prints, as files. */
const directory = mkdtempSync(join(tmpdir(), 'completion-'));
afterAll(() => rmSync(directory, { recursive: true }));

async function scriptFor(shell: string): Promise<string> {
  const file = join(directory, shell);
  if (!existsSync(file)) writeFileSync(file, (await runHere(['completion', shell])).stdout);
  return file;
}

/** Words that the shell proposes for the last of `words`, which may be empty. */
const COMPLETE: Readonly<Record<string, (script: string, words: readonly string[]) => string[]>> = {
  bash(script, words) {
    const set = `COMP_WORDS=(token-sidecar ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}`;
    const run = `source ${script}; ${set}; _token_sidecar; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return execFileSync('bash', ['-c', run], { encoding: 'utf8' }).split('\n').filter(Boolean);
  },
  fish(script, words) {
    const line = ['token-sidecar', ...words].join(' ');
    const text = execFileSync('fish', ['-N', '-c', `source ${script}; complete -C '${line}'`], {
      encoding: 'utf8',
    });
    return text
      .split('\n')
      .flatMap((row) => row.split('\t', 1))
      .filter(Boolean);
  },
};

const has = (shell: string): boolean => spawnSync(shell, ['--version']).status === 0;

describe.each(Object.keys(COMPLETE))('%s', (shell) => {
  const complete = COMPLETE[shell] as (script: string, words: readonly string[]) => string[];

  it.runIf(has(shell))(
    'completes commands, flags of a command, and the words that a flag takes',
    async () => {
      const script = await scriptFor(shell);
      expect(complete(script, ['che'])).toEqual(['check']);
      expect(complete(script, ['wait', '--wait'])).toEqual(['--wait-timeout']);
      expect(complete(script, ['proxy', '--log-level', 'de'])).toEqual(['debug']);
      expect(complete(script, ['completion', 'z'])).toEqual(['zsh']);
      expect(complete(script, ['issuer', 'h'])).toEqual(['hash']);
      expect(complete(script, ['injector', 'w'])).toEqual(['wait']);
    },
  );
});

/** Only a terminal completes: one within the shell is read until the line shows what was not typed. */
function zshShows(script: string, typed: string, expected: string): string {
  const run = [
    'zmodload zsh/zpty',
    "zpty shell 'zsh -f -i'",
    `zpty -w shell "PS1=; autoload -U compinit; compinit -u -D; source ${script}; echo READ''Y"`,
    "zpty -r shell line '*READY*'",
    `zpty -w -n shell $'${typed}\\t'`,
    `zpty -r shell line '*${expected}*' && print found`,
  ].join('\n');
  return execFileSync('zsh', ['-f', '-c', run], {
    encoding: 'utf8',
    env: { ...process.env, TERM: 'dumb' },
    timeout: 30_000,
  });
}

describe('zsh', () => {
  it.runIf(has('zsh')).each([
    ['token-sidecar che', 'check'],
    ['token-sidecar wait --wait', '--wait-timeout'],
    ['token-sidecar proxy --log-level de', 'debug'],
    ['token-sidecar completion z', 'zsh'],
    ['token-sidecar issuer h', 'hash'],
  ])('completes %s to %s', async (typed, expected) => {
    expect(zshShows(await scriptFor('zsh'), typed, expected)).toBe('found\n');
  });
});

it('another shell is a mistake that names those that there are', async () => {
  expect(await runHere(['completion', 'tcsh'])).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('completion takes one word: bash, zsh, fish'),
  });
});
