/** What each row showed, printed as one table at the end. */

import type { AppAnswer } from './app.ts';

export interface RowResult {
  readonly row: string;
  readonly app: string;
  readonly grants: string;
  readonly metrics: string;
  readonly recovery: string;
}

const results: RowResult[] = [];

export function record(result: RowResult): void {
  results.push(result);
}

/** `200 ×60, 503 ×20`: runs of the same status, in the order they were sent. */
export function describeAnswers(answers: readonly AppAnswer[]): string {
  const runs: { status: number; count: number }[] = [];
  for (const { status } of answers.toSorted((a, b) => a.sentAtMs - b.sentAtMs)) {
    const last = runs.at(-1);
    if (last?.status === status) last.count += 1;
    else runs.push({ status, count: 1 });
  }
  return runs.map(({ status, count }) => `${status} ×${count}`).join(', ');
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

export function printMatrix(): void {
  const header: RowResult = {
    row: 'row',
    app: 'app saw',
    grants: 'grants',
    metrics: 'metrics said',
    recovery: 'recovery',
  };
  const columns = ['row', 'app', 'grants', 'metrics', 'recovery'] as const;
  const widths = columns.map((column) =>
    Math.max(...[header, ...results].map((result) => result[column].length)),
  );
  const lines = [header, ...results].map((result) =>
    columns.map((column, index) => result[column].padEnd(widths[index] ?? 0)).join('  '),
  );
  process.stdout.write(`\n${lines.map((line) => line.trimEnd()).join('\n')}\n\n`);
}
