import { styleText } from 'node:util';
import { exitStatusOfAll } from '../platform/exit-status.ts';
import type { Finding } from './check-context.ts';

type Style = Parameters<typeof styleText>[0];

const MARKS = {
  ok: { text: 'ok  ', style: 'green' },
  warning: { text: 'WARN', style: ['yellow', 'bold'] },
  failure: { text: 'FAIL', style: ['red', 'bold'] },
} as const satisfies Record<Finding['verdict'], { readonly text: string; readonly style: Style }>;

/** Characters. Longer names push their details aside. */
const WIDEST_NAME = 48;

export function formatTable(findings: readonly Finding[], { colour }: { readonly colour: boolean }): string {
  const paint = (style: Style, text: string) =>
    colour ? styleText(style, text, { validateStream: false }) : text;
  const width = Math.min(WIDEST_NAME, Math.max(...findings.map(({ what }) => what.length)));
  const rows = findings.map((finding) => {
    const { text, style } = MARKS[finding.verdict];
    const row = `${paint(style, text)}  ${finding.what.padEnd(width)}  ${finding.detail}`.trimEnd();
    return finding.verdict === 'ok' ? row : `${row}\n      ${paint('cyan', '→')} ${finding.remedy}`;
  });
  return `${rows.join('\n')}\n\n${paint('bold', summary(findings))}\n`;
}

function summary(findings: readonly Finding[]): string {
  const count = (verdict: Finding['verdict']) =>
    findings.filter((finding) => finding.verdict === verdict).length;
  const [failures, warnings] = [count('failure'), count('warning')];
  const steps = findings.length === 1 ? '1 step' : `${findings.length} steps`;
  if (failures + warnings === 0) return `All is well: ${steps}.`;
  const parts = [some(failures, 'failure'), some(warnings, 'warning')].filter((part) => part !== undefined);
  return `${parts.join(' and ')} in ${steps}.`;
}

function some(number: number, what: string): string | undefined {
  return number === 0 ? undefined : `${number} ${what}${number === 1 ? '' : 's'}`;
}

/** `{ "findings": [{ "step", "what", "verdict", "detail", "remedy"?, "failure"? }] }` */
export function formatJson(findings: readonly Finding[]): string {
  return `${JSON.stringify({ findings }, null, 2)}\n`;
}

/** Warnings leave it at 0. */
export function exitStatusOfFindings(findings: readonly Finding[]): number {
  return exitStatusOfAll(
    findings.flatMap((finding) => (finding.verdict === 'failure' ? [finding.failure] : [])),
  );
}
