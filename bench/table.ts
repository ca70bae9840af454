/** Figures as text. */

import { describeCell } from './cells.ts';
import type { Machine } from './machine.ts';
import { type CellFigures, median, type StartFigures, summarize } from './results.ts';
import { megabytes, milliseconds, type Verdict } from './targets.ts';

export function machineText({ cpu, cores, memoryBytes, kernel, revision, versions }: Machine): string {
  const memory = `${(memoryBytes / 1024 ** 3).toFixed(0)} GiB`;
  const programs = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `${cpu}, ${cores} cores, ${memory}, ${kernel}; revision ${revision}\n${programs.join(', ')}`;
}

export function cellTable({ cell, fixedWorkMs = [], direct, proxies }: CellFigures): string {
  const rows = Object.entries(proxies).map(([name, figures]) => {
    const summary = summarize(figures, direct);
    return [
      name,
      summary.cpuUsPerRequest.toFixed(1),
      summary.requestsPerSecond.toFixed(0),
      megabytes(summary.bytesPerSecond),
      percent(summary.proxyCoreShare),
      percent(summary.loadCoreShare),
      millisecondsIfAny(summary.addedP50Us),
      millisecondsIfAny(summary.addedP99Us),
      `${megabytes(summary.idle.anonymousBytes)} → ${megabytes(summary.loaded.anonymousBytes)}`,
      `${megabytes(summary.idle.residentBytes)} → ${megabytes(summary.loaded.residentBytes)}`,
      summary.failures === 0 ? '' : String(summary.failures),
    ];
  });
  const head = [
    '',
    'CPU µs/req',
    'req/s',
    'MB/s',
    'its core',
    'load',
    '+p50 ms',
    '+p99 ms',
    'anon. MB',
    'resident MB',
    'failed',
  ];
  const p50 = median(direct.latencies.map((each) => each.p50Us));
  const p99 = median(direct.latencies.map((each) => each.p99Us));
  return [
    `${cell.name}: ${describeCell(cell)}`,
    columns([head, ...rows]),
    `direct: ${direct.requestsPerSecond.toFixed(0)} req/s${
      Number.isNaN(p50) ? '' : `, p50 ${milliseconds(p50)} ms, p99 ${milliseconds(p99)} ms`
    }`,
    ...neighboursText(fixedWorkMs),
  ].join('\n');
}

/** How much of the core others on the host took; nothing where that was not measured. */
function neighboursText(fixedWorkMs: readonly number[]): readonly string[] {
  if (fixedWorkMs.length === 0) return [];
  const [least, most] = [Math.min(...fixedWorkMs), Math.max(...fixedWorkMs)];
  return [`fixed work on the proxies' core: ${least.toFixed(0)} to ${most.toFixed(0)} ms`];
}

export function startTable(starts: Readonly<Record<string, StartFigures>>): string {
  const rows = Object.entries(starts).map(([name, { toFirstConnectionMs, toLogLineMs }]) => [
    name,
    toFirstConnectionMs.toFixed(0),
    toLogLineMs?.toFixed(0) ?? '',
  ]);
  return columns([['start', 'to first connection, ms', 'to log line, ms'], ...rows]);
}

export function verdictTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ subject, bound, figure, isMet }) => [
    subject,
    bound,
    isMet === undefined ? 'not measured' : isMet ? 'met' : 'MISSED',
    figure ?? '',
  ]);
  return columns([['target', '', '', ''], ...rows], 4);
}

/** The first columns to the left, the others to the right. */
function columns(rows: readonly (readonly string[])[], leftAligned = 1): string {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((text, index) =>
          index < leftAligned ? text.padEnd(widths[index] ?? 0) : text.padStart(widths[index] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function millisecondsIfAny(microseconds: number): string {
  return Number.isNaN(microseconds) ? '' : milliseconds(microseconds);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
