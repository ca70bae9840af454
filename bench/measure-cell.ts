/** One cell of the matrix: every proxy in turn, several times over. */

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cell, PAYLOADS } from './cells.ts';
import type { Cores } from './cores.ts';
import { measureLatency } from './latency.ts';
import { cpuSeconds, type Memory, memoryOf } from './process-figures.ts';
import type { ProxyKind } from './proxies/proxy.ts';
import { type RunningProxy, type Surroundings, startProxy } from './proxies/running-proxy.ts';
import type { CellFigures, Repetition } from './results.ts';
import { runWrk, type WrkTarget } from './wrk.ts';

export interface Effort {
  /** How long throughput is measured each time, in whole seconds. */
  readonly seconds: number;
  readonly repetitions: number;
}

const SETTLE_MS = 1500;
const SAMPLE_MS = 250;

/** The first load of a process is longer: code is compiled while it runs. */
const FIRST_WARM_UP_SECONDS = 2;
const WARM_UP_SECONDS = 1;

/** Latency needs fewer seconds than throughput, but enough samples for its 99th percentile. */
function latencySeconds(cell: Cell, { seconds }: Effort): number {
  return Math.max(0.75, (seconds * cell.latencyWeight) / 3);
}

/** How long a cell takes, roughly. */
export function expectedSeconds(cell: Cell, kinds: number, effort: Effort): number {
  const latency = latencySeconds(cell, effort) + 0.8;
  const each = WARM_UP_SECONDS + effort.seconds + latency + 0.3;
  const firstWarmUps = (Math.min(FIRST_WARM_UP_SECONDS, effort.seconds) - WARM_UP_SECONDS) * kinds;
  const direct = effort.seconds + effort.repetitions * latency;
  return effort.repetitions * kinds * each + firstWarmUps + direct + SETTLE_MS / 1000 + kinds * 0.3;
}

/**
 * All proxies run side by side, one under load at a time. Repetitions go through them in different orders, so that a
 * machine that becomes slower or faster does so for all.
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
    for (const kind of kinds) {
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

    const direct = await runWrk(upstreamTarget(cell, surroundings), cell, effort.seconds, cores);
    const latencies = [];
    for (let index = 0; index < effort.repetitions; index++) {
      latencies.push(await measureLatency(upstream.plainPort, cell, latencySeconds(cell, effort), cores));
      for (const { proxy, repetitions } of inOrder(measured, index)) {
        const warmUp = index === 0 ? FIRST_WARM_UP_SECONDS : WARM_UP_SECONDS;
        const repetition = await measureOnce(proxy, cell, cores, effort, warmUp).catch(
          (error: Error) => error,
        );
        if (repetition instanceof Error) notice(`${cell.name}: ${proxy.kind.name}: ${repetition.message}`);
        else repetitions.push(repetition);
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
  cores: Cores,
  effort: Effort,
  warmUpSeconds: number,
): Promise<Repetition> {
  const target: WrkTarget = { protocol: 'http', port: proxy.port };
  await runWrk(target, cell, Math.min(warmUpSeconds, effort.seconds), cores);

  const beganAtMs = performance.now();
  const busyBefore = busySeconds(cores);
  const cpuBefore = cpuSeconds(proxy.pid);
  const peak = watchMemory(proxy.pid);
  const load = await runWrk(target, cell, effort.seconds, cores).finally(() => peak.stop());
  const cpu = cpuSeconds(proxy.pid) - cpuBefore;
  const busy = busySeconds(cores) - busyBefore;
  const seconds = (performance.now() - beganAtMs) / 1000;

  const latency = await measureLatency(proxy.port, cell, latencySeconds(cell, effort), cores);
  const { p50Us, p99Us, samples } = latency;
  return {
    requestsPerSecond: perSecond(load.requests, load.durationUs),
    cpuUsPerRequest: (cpu * 1e6) / load.requests,
    bytesPerSecond: perSecond(
      load.bytes + load.requests * PAYLOADS[cell.payload].uploadBytes,
      load.durationUs,
    ),
    proxyCoreShare: cpu / seconds,
    loadCoreShare: busy / seconds / cores.loadCount,
    latency: { p50Us, p99Us, samples },
    loaded: peak.memory(),
    failures: load.refused + load.failed + latency.failed,
  };
}

function upstreamTarget(cell: Cell, { upstream }: Surroundings): WrkTarget {
  return cell.upstream === 'tls'
    ? { protocol: 'https', port: upstream.tlsPort }
    : { protocol: 'http', port: upstream.plainPort };
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
