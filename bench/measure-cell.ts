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
import { type RunningProxy, type Surroundings, startProxy } from './proxies/running-proxy.ts';
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
 * wanted. After eight seconds figures stand still.
 */
const WARM_UP_SECONDS = 8;
const FIXED_WORK_SECONDS = 0.2;

/** A run that is shortened warms up for as long as it measures. */
function warmUpSeconds({ seconds, repetitions }: Effort): number {
  return Math.min(WARM_UP_SECONDS, seconds * repetitions);
}

/**
 * Latency needs fewer seconds than throughput, but enough samples for its 99th percentile. It is measured over HTTP/1.1
 * alone.
 */
function latencySeconds(cell: Cell, { seconds }: Effort): number {
  return cell.protocol === 'http2' ? 0 : Math.max(0.75, (seconds * cell.latencyWeight) / 3);
}

async function latencyOf(
  port: number,
  cell: Cell,
  effort: Effort,
  cores: Cores,
): Promise<OpenLoopFigures | undefined> {
  return cell.protocol === 'http2'
    ? undefined
    : await measureLatency(port, cell, latencySeconds(cell, effort), cores);
}

/** How long a cell takes, roughly. */
export function expectedSeconds(cell: Cell, kinds: number, effort: Effort): number {
  const latency = cell.protocol === 'http2' ? 0 : latencySeconds(cell, effort) + 0.8;
  const each = effort.seconds + latency + FIXED_WORK_SECONDS + 0.3;
  const direct = effort.seconds + effort.repetitions * latency;
  const warmUps = kinds * warmUpSeconds(effort);
  return effort.repetitions * kinds * each + warmUps + direct + SETTLE_MS / 1000 + kinds * 0.3;
}

/**
 * All proxies run side by side, one under load at a time. Repetitions are short and go through them in different orders, so
 * that a machine that becomes slower or faster does so for all.
 */
export async function measureCell(
  cell: Cell,
  kinds: readonly ProxyKind[],
  surroundings: Surroundings,
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

    for (const { proxy } of measured) {
      await runLoad(targetOf(proxy), cell, warmUpSeconds(effort), surroundings).catch((error: Error) =>
        notice(`${cell.name}: ${proxy.kind.name}: ${error.message}`),
      );
    }
    const direct = await runLoad(upstreamTarget(cell, surroundings), cell, effort.seconds, surroundings);
    const latencies = [];
    let workMs = await timeFixedWork(cores);
    for (let index = 0; index < effort.repetitions; index++) {
      const latency = await latencyOf(upstream.plainPort, cell, effort, cores);
      if (latency !== undefined) latencies.push(latency);
      for (const { proxy, repetitions } of inOrder(measured, index)) {
        const workBeforeMs = workMs;
        const figures = await measureOnce(proxy, cell, surroundings, effort).catch((error: Error) => error);
        workMs = await timeFixedWork(cores);
        if (figures instanceof Error) notice(`${cell.name}: ${proxy.kind.name}: ${figures.message}`);
        else repetitions.push({ ...figures, fixedWorkMs: Math.max(workBeforeMs, workMs) });
      }
    }
    return {
      cell,
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

async function measureOnce(
  proxy: RunningProxy,
  cell: Cell,
  surroundings: Surroundings,
  effort: Effort,
): Promise<Repetition> {
  const { cores } = surroundings;
  const beganAtMs = performance.now();
  const busyBefore = busySeconds(cores);
  const cpuBefore = cpuSeconds(proxy.pid);
  const peak = watchMemory(proxy.pid);
  const load = await runLoad(targetOf(proxy), cell, effort.seconds, surroundings).finally(() => peak.stop());
  if (proxy.hasEnded()) throw new Error('it has ended');
  if (load.requests === 0) throw new Error('it answered nothing');
  const cpu = cpuSeconds(proxy.pid) - cpuBefore;
  const busy = busySeconds(cores) - busyBefore;
  const seconds = (performance.now() - beganAtMs) / 1000;

  const latency = await latencyOf(proxy.port, cell, effort, cores);
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
}

function targetOf({ port }: RunningProxy): LoadTarget {
  return { protocol: 'http', port };
}

function upstreamTarget(cell: Cell, { upstream }: Surroundings): LoadTarget {
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
