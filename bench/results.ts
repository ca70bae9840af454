/** What a run has found, as it is written to bench/results/. */

import type { Cell } from './cells.ts';
import type { Machine } from './machine.ts';
import type { Memory } from './process-figures.ts';

export interface Repetition {
  readonly requestsPerSecond: number;
  /** User and system time of the proxy's processes, per request. */
  readonly cpuUsPerRequest: number;
  /** Answers, heads included, and bodies uploaded. */
  readonly bytesPerSecond: number;
  /** Part of the time that the core of the proxy, and those of load and upstream, were busy; 1 is all of it. */
  readonly proxyCoreShare: number;
  readonly loadCoreShare: number;
  /** At the fixed rate; over HTTP/1.1, and not in every repetition. */
  readonly latency?: { readonly p50Us: number; readonly p99Us: number; readonly samples: number };
  /** Highest while under load. */
  readonly loaded: Memory;
  /** Requests that failed or were answered by an error, of both phases. */
  readonly failures: number;
}

export interface ProxyFigures {
  readonly idle: Memory;
  readonly repetitions: readonly Repetition[];
}

export interface Direct {
  /** Of the upstream itself, over TLS if the cell's upstream has it: the bound that the load sets. */
  readonly requestsPerSecond: number;
  /** From client to upstream without TLS and without a proxy, in the same repetitions. */
  readonly latencies: readonly { readonly p50Us: number; readonly p99Us: number }[];
}

export interface CellFigures {
  readonly cell: Cell;
  /**
   * How long the core of the proxies took for a fixed piece of work, once before each repetition: on a machine without
   * neighbours always the same. Missing in earlier results.
   */
  readonly fixedWorkMs?: readonly number[];
  readonly direct: Direct;
  /** By name; a proxy that could not be started or loaded is missing. */
  readonly proxies: Readonly<Record<string, ProxyFigures>>;
}

/** Medians, in ms. */
export interface StartFigures {
  readonly toFirstConnectionMs: number;
  /** The sidecar's own log line. */
  readonly toLogLineMs?: number;
  readonly starts: number;
}

export interface BenchmarkResult {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly secondsPerCell: number;
  readonly repetitions: number;
  readonly starts: Readonly<Record<string, StartFigures>>;
  readonly cells: readonly CellFigures[];
}

export interface Summary {
  readonly requestsPerSecond: number;
  readonly cpuUsPerRequest: number;
  readonly bytesPerSecond: number;
  readonly proxyCoreShare: number;
  readonly loadCoreShare: number;
  /** NaN where latency is not measured. */
  readonly addedP50Us: number;
  readonly addedP99Us: number;
  readonly idle: Memory;
  readonly loaded: Memory;
  readonly failures: number;
}

/**
 * Each figure is the median of the repetitions', by itself, and of latency of those that have it; memory is the highest of all,
 * failures are of all together.
 */
export function summarize({ idle, repetitions }: ProxyFigures, direct: Direct): Summary {
  const of = (read: (repetition: Repetition) => number): number => median(repetitions.map(read));
  const highest = (read: (memory: Memory) => number): number =>
    Math.max(...repetitions.map(({ loaded }) => read(loaded)));
  const latencies = repetitions.flatMap(({ latency }) => latency ?? []);
  return {
    requestsPerSecond: of((each) => each.requestsPerSecond),
    cpuUsPerRequest: of((each) => each.cpuUsPerRequest),
    bytesPerSecond: of((each) => each.bytesPerSecond),
    proxyCoreShare: of((each) => each.proxyCoreShare),
    loadCoreShare: of((each) => each.loadCoreShare),
    addedP50Us:
      median(latencies.map((each) => each.p50Us)) - median(direct.latencies.map((each) => each.p50Us)),
    addedP99Us:
      median(latencies.map((each) => each.p99Us)) - median(direct.latencies.map((each) => each.p99Us)),
    idle,
    loaded: {
      residentBytes: highest((each) => each.residentBytes),
      anonymousBytes: highest((each) => each.anonymousBytes),
    },
    failures: repetitions.reduce((total, each) => total + each.failures, 0),
  };
}

/** Of an even number, the mean of the middle two. NaN of none. */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}
