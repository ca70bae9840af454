import type { Command } from '../../config/command.ts';
import { readSettings, type Settings } from '../../config/settings.ts';
import { didYouMean } from '../../config/suggestion.ts';
import { SidecarError } from '../../platform/errors.ts';
import { CHAPTERS, CODES, explanationOf } from './explanations.ts';

const SETTINGS = {} as const satisfies Settings;

const WIDTH = 100;

export const explain: Command = {
  summary:
    'Say what a code of a configuration or proxy error, a step of check, or an exit status means and what to do',
  operands: '[CODE]',
  settings: SETTINGS,
  examples: [
    ['token-sidecar explain unknown_key', 'a kind of mistake in a configuration'],
    ['token-sidecar explain token_unavailable', 'an answer of the proxy'],
    ['token-sidecar explain 77', 'an exit status'],
  ],
  async run({ args, env, stdout }) {
    const { positionals } = readSettings(SETTINGS, args, env);
    const [word, ...others] = positionals;
    if (others.length > 0) throw new SidecarError('usage', 'explain takes one code at a time');
    stdout.write(word === undefined ? listCodes() : explainCode(codeIn(word)));
    return 0;
  },
};

/** Accepts `error[unknown_key]:`, as messages print it. */
function codeIn(word: string): string {
  return /^(?:error)?\[?([a-z0-9_]+)\]?:?$/i.exec(word)?.[1]?.toLowerCase() ?? word;
}

function explainCode(code: string): string {
  const explanation = explanationOf(code);
  if (explanation === undefined) {
    throw new SidecarError('usage', `there is no code ${code.slice(0, WIDTH)}${didYouMean(code, CODES)}`);
  }
  const { title, text, wrong, right, remedy } = explanation;
  return [
    `${code}: ${title}.`,
    wrap(text),
    ...(wrong === undefined ? [] : [`Wrong:\n\n${indent(wrong)}`]),
    ...(right === undefined ? [] : [`${wrong === undefined ? 'For example' : 'Right'}:\n\n${indent(right)}`]),
    ...(remedy === undefined ? [] : [wrap(`What to do: ${remedy}`)]),
  ]
    .join('\n\n')
    .concat('\n');
}

function listCodes(): string {
  const chapters = CHAPTERS.map(({ title, explanations }) => {
    const width = Math.max(...Object.keys(explanations).map((code) => code.length)) + 2;
    const rows = Object.entries(explanations).map(
      ([code, { title: what }]) => `  ${code.padEnd(width)}${what}`,
    );
    return [`${title}:`, ...rows].join('\n');
  });
  return `${chapters.join('\n\n')}\n`;
}

function indent(text: string): string {
  return text.replace(/^/gm, '    ');
}

function wrap(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= WIDTH)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines.join('\n');
}
