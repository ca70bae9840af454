import { describe, expect, it } from 'vitest';
import { type Cell, DEFAULT_CELLS } from '../../bench/cells.ts';
import type { BenchmarkResult, CellFigures, ProxyFigures } from '../../bench/results.ts';
import { judge, MEGABYTE } from '../../bench/targets.ts';

interface Figures {
  readonly cpuUs: number;
  readonly megabytesPerSecond?: number;
  readonly p99Us?: number;
  readonly anonymousMegabytes?: number;
}

const PEERS = {
  nginx: { cpuUs: 10, p99Us: 300 },
  'http-proxy': { cpuUs: 100 },
  envoy: { cpuUs: 40, p99Us: 800 },
  haproxy: { cpuUs: 12 },
};

function proxyFigures({
  cpuUs,
  megabytesPerSecond = 100,
  p99Us = 400,
  anonymousMegabytes = 20,
}: Figures): ProxyFigures {
  const memory = { residentBytes: 80 * MEGABYTE, anonymousBytes: anonymousMegabytes * MEGABYTE };
  const repetition = {
    requestsPerSecond: 1000,
    cpuUsPerRequest: cpuUs,
    bytesPerSecond: megabytesPerSecond * MEGABYTE,
    proxyCoreShare: 1,
    loadCoreShare: 1,
    latency: { p50Us: 200, p99Us, samples: 1000 },
    loaded: memory,
    failures: 0,
  };
  // The outlier must not count: the middle one does.
  const outlier = { ...repetition, cpuUsPerRequest: 1000 * cpuUs, bytesPerSecond: 1 };
  return { idle: memory, repetitions: [repetition, outlier, repetition] };
}

function resultOf(sidecar: Figures, startMs = 100): BenchmarkResult {
  const stats = (cell: Cell): CellFigures => ({
    cell,
    direct: { requestsPerSecond: 50_000, latencies: [{ p50Us: 100, p99Us: 150 }] },
    proxies: Object.fromEntries(
      Object.entries({ sidecar, ...PEERS }).map(([name, each]) => [name, proxyFigures(each)]),
    ),
  });
  return {
    startedAt: '2026-11-30T00:00:00.000Z',
    machine: {
      host: 'host',
      cpu: 'cpu',
      cores: 2,
      memoryBytes: 1,
      kernel: 'Linux',
      node: '26',
      loadAverageBefore: 0,
      revision: 'revision',
      versions: {},
    },
    secondsPerCell: 3,
    repetitions: 3,
    starts: { sidecar: { toFirstConnectionMs: startMs - 5, toLogLineMs: startMs, starts: 10 } },
    cells: DEFAULT_CELLS.map(stats),
  };
}

function missed(result: BenchmarkResult): string[] {
  return judge(result)
    .filter(({ isMet }) => isMet !== true)
    .map(({ subject, bound }) => `${subject} ${bound}`);
}

describe('the verdict on the targets', () => {
  it('is met where every figure is at its bound', () => {
    const sidecar = { cpuUs: 13, megabytesPerSecond: 80, p99Us: 800, anonymousMegabytes: 25 };
    expect(missed(resultOf(sidecar, 120))).toEqual([]);
  });

  it.each<[string, Figures, number, number]>([
    ['CPU beside every proxy', { cpuUs: 41 }, 100, 33],
    ['CPU', { cpuUs: 29 }, 100, 15],
    ['CPU at one connection and of HTTP/1.1', { cpuUs: 25 }, 100, 12],
    ['CPU beside nginx and HAProxy alone', { cpuUs: 16 }, 100, 7],
    ['CPU of small requests and uploads', { cpuUs: 14 }, 100, 3],
    ['throughput', { cpuUs: 13, megabytesPerSecond: 79 }, 100, 1],
    ['latency', { cpuUs: 13, p99Us: 801 }, 100, 3],
    ['idle memory', { cpuUs: 13, anonymousMegabytes: 26 }, 100, 1],
    ['memory of connections that close and uploads', { cpuUs: 13, anonymousMegabytes: 41 }, 100, 5],
    ['loaded memory', { cpuUs: 13, anonymousMegabytes: 46 }, 100, 6],
    ['loaded memory of many streams', { cpuUs: 13, anonymousMegabytes: 51 }, 100, 7],
    ['the log line', { cpuUs: 13 }, 121, 1],
  ])('is missed by %s beyond its bound', (_, sidecar, startMs, count) => {
    expect(missed(resultOf(sidecar, startMs))).toHaveLength(count);
  });

  it('says of what was not measured that it was not', () => {
    const { cells, ...rest } = resultOf({ cpuUs: 13 });
    const withoutEnvoy = cells.map(({ proxies: { envoy: _, ...proxies }, ...cell }) => ({
      ...cell,
      proxies,
    }));
    const verdicts = judge({ ...rest, cells: withoutEnvoy, starts: {} });
    expect(verdicts.filter(({ isMet }) => isMet === undefined).map(({ bound }) => bound)).toEqual([
      ...DEFAULT_CELLS.slice(1).map(() => '≤ 1 × envoy'),
      '≤ 0.6 × envoy',
      ...["≤ envoy's", "≤ envoy's"],
      ...['≤ 0.6 × envoy', '≤ 0.6 × envoy', '≤ 0.7 × envoy', '≤ 0.7 × envoy'],
      '≤ 120 ms',
    ]);
  });
});
