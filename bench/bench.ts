/** Side by side on loopback: this project and what else could do its work. See README.md beside this file. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { drawChart } from './chart.ts';
import { describeMachine, runName } from './machine.ts';
import { expectedSeconds, measureCell } from './measure-cell.ts';
import { measureStarts } from './measure-starts.ts';
import { type Options, readOptions, USAGE } from './options.ts';
import { CACHE } from './programs.ts';
import type { ProxyKind } from './proxies/proxy.ts';
import type { Dependencies } from './proxies/running-proxy.ts';
import type { BenchmarkResult, CellFigures, StartFigures } from './results.ts';
import { buildSidecar, endOnInterrupt, print, withSurroundings } from './run.ts';
import { cellTable, machineText, startTable, verdictTable } from './table.ts';
import { judge } from './targets.ts';

const ROOT = join(import.meta.dirname, '..');
const SECONDS_PER_START = 0.4;

/** The build just before leaves a trace of its own in the average. */
const QUIET_LOAD = 0.7;

endOnInterrupt();
if (process.argv.includes('--help')) print(USAGE);
else await main(readOptions(process.argv.slice(2)));

async function main(options: Options): Promise<void> {
  if (options.build) await buildSidecar();
  const kinds: ProxyKind[] = [];
  for (const kind of options.kinds) {
    if ((await kind.version()) === undefined) print(`notice: ${kind.name} is not here and is left out`);
    else kinds.push(kind);
  }
  const result = await withSurroundings((surroundings) => measure(options, kinds, surroundings));
  print(verdictTable(judge(result)));
  await publish(result, options.isWhole);
}

async function measure(
  { cells, effort, starts: startCount }: Options,
  kinds: readonly ProxyKind[],
  surroundings: Dependencies,
): Promise<BenchmarkResult> {
  const startedAt = new Date().toISOString();
  const machine = await describeMachine(kinds);
  const { proxy, load } = surroundings.cores;
  const minutes =
    (cells.reduce((total, cell) => total + expectedSeconds(cell, kinds, effort), 0) +
      kinds.length * startCount * SECONDS_PER_START) /
    60;
  print(machineText(machine));
  if (machine.loadAverageBefore > QUIET_LOAD) {
    print(`notice: the machine is not quiet (load ${machine.loadAverageBefore.toFixed(1)}); trust no figure`);
  }
  print(`proxies on core ${proxy}, load and upstream on ${load}`);
  print(`${cells.length} cells, ${kinds.length} proxies: about ${minutes.toFixed(0)} min\n`);

  const starts: Record<string, StartFigures> = {};
  if (startCount > 0) {
    for (const kind of kinds.filter(({ protocols }) => protocols.includes('http1'))) {
      const figures = await measureStarts(kind, surroundings, startCount).catch((error: Error) => error);
      if (figures instanceof Error) print(`notice: ${kind.name} does not start: ${figures.message}`);
      else starts[kind.name] = figures;
    }
    print(`${startTable(starts)}\n`);
  }
  const measured: CellFigures[] = [];
  for (const cell of cells) {
    const figures = await measureCell(cell, kinds, surroundings, effort, (text) => print(`notice: ${text}`));
    print(`${cellTable(figures)}\n`);
    measured.push(figures);
  }
  const { seconds, repetitions } = effort;
  return { startedAt, machine, secondsPerCell: seconds, repetitions, starts, cells: measured };
}

/** A run that is narrowed or shortened overwrites nothing that readers see. */
async function publish(result: BenchmarkResult, isWhole: boolean): Promise<void> {
  const directory = isWhole ? join(import.meta.dirname, 'results') : join(CACHE, 'results');
  const file = join(directory, runName(new Date(result.startedAt), result.machine));
  const chart = drawChart(result);
  await mkdir(directory, { recursive: true });
  await writeFile(`${file}.json`, `${JSON.stringify(result, null, 1)}\n`);
  const drawn = isWhole ? join(ROOT, 'docs/images/bench.svg') : `${file}.svg`;
  await writeFile(drawn, chart);
  print(`\n${relative(ROOT, file)}.json, ${relative(ROOT, drawn)}`);
}
