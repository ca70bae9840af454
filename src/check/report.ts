import { styleText } from 'node:util';
import { exitStatusOfAll } from '../platform/exit-status.ts';
import type { Finding } from './check-context.ts';
import { STEPS } from './steps.ts';

type Style = Parameters<typeof styleText>[0];

const MARKS = {
  ok: { text: 'ok  ', style: 'green' },
  warning: { text: 'WARN', style: ['yellow', 'bold'] },
  failure: { text: 'FAIL', style: ['red', 'bold'] },
} as const satisfies Record<Finding['verdict'], { readonly text: string; readonly style: Style }>;

/** Characters. Longer names push their details aside. */
const WIDEST_NAME = 48;

/** A heading for each credential, route and host. What is said of the sidecar comes first, without one. */
export function formatTable(findings: readonly Finding[], { colour }: { readonly colour: boolean }): string {
  const paint = (style: Style, text: string) =>
    colour ? styleText(style, text, { validateStream: false }) : text;
  const sections = Map.groupBy(findings, headingOf);
  const names = findings.map((finding) => nameOf(finding).length);
  const width = Math.min(WIDEST_NAME, Math.max(...names));
  const said = new Map<string, string>();
  const row = (finding: Finding) => {
    const { text, style } = MARKS[finding.verdict];
    const start = `${paint(style, text)}  ${nameOf(finding).padEnd(width)}`;
    if (finding.verdict === 'ok') return `${start}  ${finding.detail}`.trimEnd();
    const key = JSON.stringify([finding.step, finding.detail, finding.remedy]);
    const before = said.get(key);
    if (before !== undefined) return `${start}  as ${before} above`;
    said.set(key, finding.subject ?? nameOf(finding));
    const explain = paint('dim', `[${finding.step}]`);
    return `${start}  ${finding.detail}\n      ${paint('cyan', '→')} ${finding.remedy} ${explain}`;
  };
  const shown = [...sections].map(([heading, rows]) =>
    [...(heading === '' ? [] : [paint('bold', heading)]), ...rows.map(row)].join('\n'),
  );
  return `${shown.join('\n\n')}\n\n${paint('bold', summary(findings))}\n`;
}

/** Empty for the sidecar. Intercepted hosts, of which there may be many, share one. */
function headingOf({ step, subject }: Finding): string {
  const { of } = STEPS[step];
  if (of === 'interception') return of;
  return of === 'sidecar' || of === 'running sidecar' ? '' : (subject ?? '');
}

function nameOf(finding: Finding): string {
  return headingOf(finding) === '' ? finding.what : STEPS[finding.step].title;
}

function summary(findings: readonly Finding[]): string {
  const count = (verdict: Finding['verdict']) =>
    findings.filter((finding) => finding.verdict === verdict).length;
  const [failures, warnings] = [count('failure'), count('warning')];
  const steps = findings.length === 1 ? '1 step' : `${findings.length} steps`;
  const first = findings.find(({ verdict }) => verdict === 'failure') ?? findings.find(isOdd);
  if (first === undefined) return `All is well: ${steps}.`;
  const parts = [some(failures, 'failure'), some(warnings, 'warning')].filter((part) => part !== undefined);
  return `${parts.join(' and ')} in ${steps}. To read more about one: token-sidecar explain ${first.step}`;
}

function isOdd({ verdict }: Finding): boolean {
  return verdict !== 'ok';
}

function some(number: number, what: string): string | undefined {
  return number === 0 ? undefined : `${number} ${what}${number === 1 ? '' : 's'}`;
}

/** `{ "findings": [{ "step", "subject"?, "what", "verdict", "detail", "remedy"?, "failure"? }] }` */
export function formatJson(findings: readonly Finding[]): string {
  return `${JSON.stringify({ findings }, null, 2)}\n`;
}

/** Warnings leave it at 0. */
export function exitStatusOfFindings(findings: readonly Finding[]): number {
  return exitStatusOfAll(
    findings.flatMap((finding) => (finding.verdict === 'failure' ? [finding.failure] : [])),
  );
}
