import type { Command } from '../../config/command.ts';
import { readSettings, type Settings } from '../../config/settings.ts';
import { didYouMean } from '../../config/suggestion.ts';
import { SidecarError } from '../../platform/errors.ts';
import { CHAPTERS, CODES, explanationOf } from './explanations.ts';
import { blocksOfMarkdown, indent, wrap } from './terminal-text.ts';

const SETTINGS = {} as const satisfies Settings;

export const explain: Command = {
  summary: 'Say what a code, an exit status, a step of check or an alert means and what to do',
  operands: '[CODE]',
  settings: SETTINGS,
  examples: [
    ['token-sidecar explain unknown_key', 'a kind of mistake in a configuration'],
    ['token-sidecar explain token_unavailable', 'an answer of the proxy'],
    ['token-sidecar explain 77', 'an exit status'],
    ['token-sidecar explain TokenSidecarDown', 'the runbook of an alert'],
  ],
  async run({ args, env, stdout }) {
    const { positionals } = readSettings(SETTINGS, args, env);
    const [word, ...others] = positionals;
    if (others.length > 0) throw new SidecarError('usage', 'explain takes one code at a time');
    stdout.write(word === undefined ? await listCodes() : await explainWord(word));
    return 0;
  },
};

async function explainWord(word: string): Promise<string> {
  const code = codeIn(word);
  const explanation = explanationOf(code);
  if (explanation !== undefined) return explainCode(code, explanation);
  const { alerts, pages } = await loadRunbooks();
  const alert = Object.keys(alerts).find((name) => name.toLowerCase() === code);
  if (alert !== undefined) return explainAlert(pages[alert] ?? '');
  const nearest = didYouMean(code, [...CODES, ...Object.keys(alerts)]);
  throw new SidecarError('usage', `there is no code ${code.slice(0, 100)}${nearest}`);
}

/** @property alerts what each says, as the index of the runbooks has it. */
async function loadRunbooks() {
  const { readRunbooks } = await import('./runbooks.ts');
  const pages = readRunbooks();
  const rows = (pages['README'] ?? '').matchAll(/^\| \[(\w+)\]\(\w+\.md\) \| \w+ \| (.*) \|$/gm);
  const alerts = Object.fromEntries([...rows].map(([, name = '', says = '']) => [name, says]));
  return { alerts, pages };
}

function explainAlert(page: string): string {
  const links = page.matchAll(/\]\((?:(Token\w+)\.md|[^)]*codes\.md#(\w+))\)/g);
  const others = [...new Set([...links].map(([, alert, code]) => alert ?? code))];
  const placeholders = "NAMESPACE, POD and CREDENTIAL are the alert's labels.";
  const also = others.length === 0 ? [] : [wrap(`Also: token-sidecar explain ${others.join(', ')}`)];
  return `${[...blocksOfMarkdown(page), placeholders, ...also].join('\n\n')}\n`;
}

/** Accepts `error[unknown_key]:`, as messages print it. */
function codeIn(word: string): string {
  return /^(?:error)?\[?([a-z0-9_]+)\]?:?$/i.exec(word)?.[1]?.toLowerCase() ?? word;
}

function explainCode(
  code: string,
  { title, text, wrong, right, remedy }: NonNullable<ReturnType<typeof explanationOf>>,
): string {
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

async function listCodes(): Promise<string> {
  const { alerts } = await loadRunbooks();
  const chapters = CHAPTERS.map(({ title, explanations }) => {
    const titles = Object.entries(explanations).map(([code, { title: what }]) => [code, what] as const);
    return [title, titles] as const;
  });
  return [...chapters, ['Runbooks of alerts', Object.entries(alerts)] as const]
    .map(([title, rows]) => {
      const width = Math.max(...rows.map(([code]) => code.length)) + 2;
      return [`${title}:`, ...rows.map(([code, what]) => `  ${code.padEnd(width)}${what}`)].join('\n');
    })
    .join('\n\n')
    .concat('\n');
}
