/**
 * The chart of a run, as SVG. Also a program that draws a result again:
 *
 *     node bench/chart.ts bench/results/NAME.json > docs/images/bench.svg
 */

import { readFile } from 'node:fs/promises';
import { MANY, ONE_CONNECTION, PLAIN, REFERENCE } from './cells.ts';
import { type BenchmarkResult, type Summary, summarize } from './results.ts';
import { MEGABYTE } from './targets.ts';

interface Panel {
  readonly title: string;
  readonly cell: { readonly name: string };
  readonly read: (summary: Summary) => number;
}

const PANELS: readonly Panel[] = [
  {
    title: 'CPU per request, TLS upstream, µs',
    cell: REFERENCE,
    read: (summary) => summary.cpuUsPerRequest,
  },
  {
    title: 'CPU per request, plain upstream, µs',
    cell: PLAIN,
    read: (summary) => summary.cpuUsPerRequest,
  },
  ...ONE_CONNECTION.map((cell) => ({
    title: `CPU per gRPC call over HTTP/2, one connection × 32, ${cell.upstream === 'tls' ? 'TLS' : 'plain'} upstream, µs`,
    cell,
    read: (summary: Summary) => summary.cpuUsPerRequest,
  })),
  {
    title: 'Anonymous memory under load, 256 connections, MB',
    cell: MANY,
    read: (summary) => summary.loaded.anonymousBytes / MEGABYTE,
  },
];

const WIDTH = 860;
const LABEL_WIDTH = 110;
const VALUE_WIDTH = 60;
const ROW = 24;
const BAR = 16;
const TITLE = 34;
const MARGIN = 16;

/** Bars of what is less are better throughout. Colours follow the reader's light or dark scheme. */
export function drawChart(result: BenchmarkResult): string {
  let y = MARGIN;
  const parts: string[] = [];
  for (const panel of PANELS) {
    const bars = barsOf(panel, result);
    if (bars.length === 0) continue;
    parts.push(text(MARGIN, y + 16, 'title', panel.title));
    y += TITLE;
    const longest = Math.max(...bars.map(({ value }) => value));
    const room = WIDTH - 2 * MARGIN - LABEL_WIDTH - VALUE_WIDTH;
    for (const { name, value } of bars) {
      const length = Math.max(1, (value / longest) * room);
      const x = MARGIN + LABEL_WIDTH;
      const kind = name === 'sidecar' ? 'own' : 'peer';
      parts.push(
        text(x - 8, y + 13, `label ${kind}-label`, name === 'sidecar' ? 'token-sidecar' : name, 'end'),
        `<rect class="${kind}" x="${x}" y="${y}" width="${length.toFixed(1)}" height="${BAR}" rx="2"/>`,
        text(x + length + 6, y + 13, `label ${kind}-label`, value.toFixed(value < 100 ? 1 : 0)),
      );
      y += ROW;
    }
    y += MARGIN;
  }
  const { cpu, cores, kernel } = result.machine;
  const note = `Less is better. 100-byte answers, 900-byte token, ${result.secondsPerCell} s each, median of ${result.repetitions}; ${cpu}, ${cores} cores, ${kernel}; ${result.startedAt.slice(0, 10)}`;
  parts.push(text(MARGIN, y + 10, 'note', note));
  const height = y + 10 + MARGIN;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>CPU and memory of token-sidecar beside other proxies</title>
<style>
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }
  .note { font-size: 11px; fill: #59636e; }
  .own-label { font-weight: 600; }
  .own { fill: #0969da; }
  .peer { fill: #9aa4af; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .note { fill: #9198a1; }
    .own { fill: #58a6ff; }
    .peer { fill: #656c76; }
  }
</style>
${parts.join('\n')}
</svg>
`;
}

/** Shortest first. */
function barsOf({ cell, read }: Panel, result: BenchmarkResult): { name: string; value: number }[] {
  const found = result.cells.find((each) => each.cell.name === cell.name);
  if (found === undefined) return [];
  return Object.entries(found.proxies)
    .map(([name, figures]) => ({ name, value: read(summarize(figures, found.direct)) }))
    .sort((a, b) => a.value - b.value);
}

function text(x: number, y: number, className: string, content: string, anchor = 'start'): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text class="${className}" x="${x.toFixed(1)}" y="${y}" text-anchor="${anchor}">${escaped}</text>`;
}

if (import.meta.main) {
  const [file] = process.argv.slice(2);
  if (file === undefined) throw new Error('give the JSON file of a result');
  process.stdout.write(drawChart(JSON.parse(await readFile(file, 'utf8'))));
}
