/** One cell of the matrix: every proxy in turn, several times over. */

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cell, protocolOf } from './cells.ts';
import type { Cores } from './cores.ts';
import { measureLatency } from './latency.ts';
import { runLoad, uploadedBytes } from './load.ts';
import type { LoadTarget } from './load-figures.ts';
import { timeFixedWork } from './neighbours.ts';
import type { OpenLoopFigures } from './open-loop.ts';
import { cpuSeconds, type Memory, memoryOf } from './process-figures.ts';
import type { ProxyKind } from './proxies/proxy.ts';
import { type Dependencies, type RunningProxy, startProxy } from './proxies/running-proxy.ts';
import type { CellFigures, Repetition } from './results.ts';

export interface Effort {
  /** How long throughput is measured each time, in whole seconds. */
  readonly seconds: number;
  readonly repetitions: number;
}

const SETTLE_MS = 1500;
const SAMPLE_MS = 250;

/**
 * The first load of a process is longer: code is compiled while it runs, and what a proxy costs that runs for days is
 * wanted. After eight seconds figures stand still. The later ones make connections anew.
 */
const FIRST_WARM_UP_SECONDS = 8;
const WARM_UP_SECONDS = 1;

/** A run that is shortened warms up for as long as it measures. */
function firstWarmUpSeconds({ seconds, repetitions }: Effort): number {
  return Math.min(FIRST_WARM_UP_SECONDS, seconds * repetitions);
}

/**
 * Latency is measured in the first of so many repetitions: it needs seconds, for samples above its 99th percentile. The
 * number is no multiple of the three orders of `inOrder`, so that nine repetitions measure it in each of them once.
 */
const LATENCY_EVERY = 4;
const LATENCY_SECONDS = 1;

/** Over HTTP/1.1 alone. A run that is shortened measures it for a moment. */
function latencySeconds(cell: Cell, repetition: number, { repetitions }: Effort): number {
  if (cell.protocol === 'http2' || repetition % LATENCY_EVERY !== 0) return 0;
  return repetitions < LATENCY_EVERY ? 0.75 : LATENCY_SECONDS * cell.latencyWeight;
}

async function latencyOf(
  port: number,
  cell: Cell,
  seconds: number,
  cores: Cores,
): Promise<OpenLoopFigures | undefined> {
  return cell.protocol === 'http2' || seconds === 0
    ? undefined
    : await measureLatency(port, cell, seconds, cores);
}

/** How long a cell takes, roughly. */
export function expectedSeconds(cell: Cell, kinds: readonly ProxyKind[], effort: Effort): number {
  const count = kinds.filter(({ protocols }) => protocols.includes(protocolOf(cell))).length;
  const latencies = Array.from({ length: effort.repetitions }, (_, repetition) =>
    latencySeconds(cell, repetition, effort),
  ).filter((seconds) => seconds > 0);
  const latency = latencies.reduce((total, seconds) => total + seconds + 0.8, 0);
  const loads = effort.repetitions * (WARM_UP_SECONDS + effort.seconds + 0.3);
  const firstWarmUp = firstWarmUpSeconds(effort) - WARM_UP_SECONDS + 0.3;
  return count * (firstWarmUp + loads + latency) + latency + effort.seconds + SETTLE_MS / 1000;
}

/**
 * All proxies run side by side, one under load at a time. Repetitions are short and go through them in different orders, so
 * that a machine that becomes slower or faster does so for all.
 */
export async function measureCell(
  cell: Cell,
  kinds: readonly ProxyKind[],
  surroundings: Dependencies,
  effort: Effort,
  notice: (text: string) => void,
): Promise<CellFigures> {
  const { cores, upstream } = surroundings;
  const running: RunningProxy[] = [];
  try {
    for (const kind of kinds.filter(({ protocols }) => protocols.includes(protocolOf(cell)))) {
      const proxy = await startProxy(kind, cell, surroundings).catch((error: Error) => error);
      if (proxy instanceof Error) notice(`${cell.name}: ${kind.name} is left out: ${proxy.message}`);
      else running.push(proxy);
    }
    await sleep(SETTLE_MS);
    const measured = running.map((proxy) => ({
      proxy,
      idle: memoryOf(proxy.pid),
      repetitions: [] as Repetition[],
    }));

    const direct = await runLoad(upstreamTarget(cell, surroundings), cell, effort.seconds, surroundings);
    const latencies = [];
    const fixedWorkMs = [];
    for (let index = 0; index < effort.repetitions; index++) {
      const phases = {
        warmUpSeconds: index === 0 ? firstWarmUpSeconds(effort) : WARM_UP_SECONDS,
        loadSeconds: effort.seconds,
        latencySeconds: latencySeconds(cell, index, effort),
      };
      const took = await timeFixedWork(cores).catch((error: Error) => error);
      if (took instanceof Error) notice(`${cell.name}: the fixed piece of work: ${took.message}`);
      else fixedWorkMs.push(took);
      const latency = await latencyOf(upstream.plainPort, cell, phases.latencySeconds, cores);
      if (latency !== undefined) latencies.push(latency);
      for (const { proxy, repetitions } of inOrder(measured, index)) {
        const figures = await measureOnce(proxy, cell, surroundings, phases).catch((error: Error) => error);
        if (figures instanceof Error) notice(`${cell.name}: ${proxy.kind.name}: ${figures.message}`);
        else repetitions.push(figures);
      }
    }
    return {
      cell,
      fixedWorkMs,
      direct: { requestsPerSecond: perSecond(direct.requests, direct.durationUs), latencies },
      proxies: Object.fromEntries(
        measured
          .filter(({ repetitions }) => repetitions.length > 0)
          .map(({ proxy, idle, repetitions }) => [proxy.kind.name, { idle, repetitions }]),
      ),
    };
  } finally {
    await Promise.all(running.map((proxy) => proxy.stop()));
  }
}

/** As listed, backwards, then from the middle. */
function inOrder<T>(items: readonly T[], repetition: number): readonly T[] {
  if (repetition % 3 === 1) return items.toReversed();
  const middle = repetition % 3 === 2 ? Math.floor(items.length / 2) : 0;
  return [...items.slice(middle), ...items.slice(0, middle)];
}

interface Phases {
  readonly warmUpSeconds: number;
  readonly loadSeconds: number;
  /** 0 where it is not measured. */
  readonly latencySeconds: number;
}

async function measureOnce(
  proxy: RunningProxy,
  cell: Cell,
  surroundings: Dependencies,
  { warmUpSeconds, loadSeconds, latencySeconds }: Phases,
): Promise<Repetition> {
  const { cores } = surroundings;
  const target: LoadTarget = { protocol: 'http', port: proxy.port };
  const peak = watchMemory(proxy.pid);
  try {
    await runLoad(target, cell, warmUpSeconds, surroundings);
    const beganAtMs = performance.now();
    const busyBefore = busySeconds(cores);
    const cpuBefore = cpuSeconds(proxy.pid);
    const load = await runLoad(target, cell, loadSeconds, surroundings);
    if (proxy.hasEnded()) throw new Error('it has ended');
    if (load.requests === 0) throw new Error('it answered nothing');
    const cpu = cpuSeconds(proxy.pid) - cpuBefore;
    const busy = busySeconds(cores) - busyBefore;
    const seconds = (performance.now() - beganAtMs) / 1000;

    const latency = await latencyOf(proxy.port, cell, latencySeconds, cores);
    return {
      requestsPerSecond: perSecond(load.requests, load.durationUs),
      cpuUsPerRequest: (cpu * 1e6) / load.requests,
      bytesPerSecond: perSecond(load.bytes + load.requests * uploadedBytes(cell), load.durationUs),
      proxyCoreShare: cpu / seconds,
      loadCoreShare: busy / seconds / cores.loadCount,
      ...(latency === undefined
        ? {}
        : { latency: { p50Us: latency.p50Us, p99Us: latency.p99Us, samples: latency.samples } }),
      loaded: peak.memory(),
      failures: load.refused + load.failed + (latency?.failed ?? 0),
    };
  } finally {
    peak.stop();
  }
}

function upstreamTarget(cell: Cell, { upstream }: Dependencies): LoadTarget {
  return { protocol: cell.upstream === 'tls' ? 'https' : 'http', port: upstream.portFor(cell) };
}

function perSecond(count: number, durationUs: number): number {
  return (count * 1e6) / durationUs;
}

function watchMemory(pid: number): { memory(): Memory; stop(): void } {
  let peak: Memory = memoryOf(pid);
  const timer = setInterval(() => {
    const now = memoryOf(pid);
    peak = {
      residentBytes: Math.max(peak.residentBytes, now.residentBytes),
      anonymousBytes: Math.max(peak.anonymousBytes, now.anonymousBytes),
    };
  }, SAMPLE_MS);
  return { memory: () => peak, stop: () => clearInterval(timer) };
}

/** Time that the cores of the load have spent on anything, since boot (proc(5), /proc/stat). */
function busySeconds({ load }: Cores): number {
  const lines = readFileSync('/proc/stat', 'utf8').split('\n');
  return load
    .split(',')
    .map((core) => lines.find((line) => line.startsWith(`cpu${core} `))?.split(/\s+/) ?? [])
    .map(([, user, nice, system, , , irq, softirq]) =>
      [user, nice, system, irq, softirq].reduce((total, ticks) => total + Number(ticks ?? 0), 0),
    )
    .reduce((total, ticks) => total + ticks / 100, 0);
}
