/**
 * Memory over time: whether it stays flat under load for minutes, on kept connections and on 2 000 new ones a second, and what a
 * large answer to a slow reader adds.
 *
 *     npm run bench:memory -- [--minutes 10] [--only sidecar] [--no-build]
 */

import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { MANY, REFERENCE } from './cells.ts';
import { measureLatency } from './latency.ts';
import { describeMachine, type Machine, runName } from './machine.ts';
import { memoryOf } from './process-figures.ts';
import { CACHE } from './programs.ts';
import { ALL_PROXIES } from './proxies/all.ts';
import type { ProxyKind } from './proxies/proxy.ts';
import { type Dependencies, startProxy } from './proxies/running-proxy.ts';
import { median } from './results.ts';
import { buildSidecar, endOnInterrupt, print, withSurroundings } from './run.ts';
import { readSlowly } from './slow-reader.ts';
import { machineText, verdictTable } from './table.ts';
import { bounded, MEGABYTE, megabytes, type Verdict } from './targets.ts';
import { STREAM_BYTES } from './upstream.ts';
import { runWrk } from './wrk.ts';

interface Soak {
  readonly seconds: number;
  readonly requests: number;
  readonly failures: number;
  /** One a second. */
  readonly anonymousBytes: readonly number[];
}

/** A connection for each request. */
interface Churn extends Soak {
  readonly perSecond: number;
  readonly p99Us: number;
}

interface Stream {
  readonly bytes: number;
  readonly seconds: number;
  readonly anonymousBytesBefore: number;
  readonly anonymousBytesHighest: number;
}

interface ProxyMemory {
  readonly soak: Soak;
  /** Absent in results that were written before it was measured. */
  readonly churn?: Churn;
  readonly stream: Stream;
}

interface MemoryResult {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly proxies: Record<string, ProxyMemory>;
}

const SAMPLE_MS = 1000;
const STREAM_SAMPLE_MS = 100;
const STREAM_BYTES_PER_SECOND = 64 * MEGABYTE;
const WHOLE_MINUTES = 10;

/** New connections. */
const CHURN = { ...MANY, keepAlive: false, perSecond: 2000 } as const;

const LOADED_BYTES = 45 * MEGABYTE;
const ADDED_BYTES = 8 * MEGABYTE;

/** What garbage collection alone makes a flat level move by. */
const FLAT_BYTES = 2 * MEGABYTE;

endOnInterrupt();
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: String(WHOLE_MINUTES) },
    only: { type: 'string', default: 'sidecar' },
    'no-build': { type: 'boolean', default: false },
  },
});
const minutes = Number(values.minutes);
if (!(minutes > 0 && minutes <= 1440)) throw new Error('--minutes must be a number from 0 to 1440');
const kinds = ALL_PROXIES.filter((kind) => values.only.split(',').includes(kind.name));
if (kinds.length === 0) throw new Error(`--only must name some of ${ALL_PROXIES.map(({ name }) => name)}`);
if (!values['no-build']) await buildSidecar();
await publish(await withSurroundings(measure));

async function measure(surroundings: Dependencies): Promise<MemoryResult> {
  const startedAt = new Date().toISOString();
  const machine = await describeMachine(kinds);
  print(machineText(machine));
  print(`about ${Math.ceil(kinds.length * (2 * minutes + 0.5))} min\n`);
  const proxies: MemoryResult['proxies'] = {};
  for (const kind of kinds) {
    const soak = await measureSoak(kind, surroundings);
    const churn = await measureChurn(kind, surroundings);
    const stream = await measureStream(kind, surroundings);
    proxies[kind.name] = { soak, churn, stream };
    printSoak(`${kind.name}, kept connections`, soak);
    printSoak(`${kind.name}, ${churn.perSecond} new connections a second`, churn);
    print(`p99 of the new ones: ${(churn.p99Us / 1000).toFixed(2)} ms`);
    print(`${megabytes(stream.bytes)} MB streamed in ${stream.seconds.toFixed(0)} s`);
    print(`${verdictTable(judge(soak, churn, stream))}\n`);
  }
  return { startedAt, machine, proxies };
}

async function measureSoak(kind: ProxyKind, surroundings: Dependencies): Promise<Soak> {
  return await sampled(kind, surroundings, async (port, seconds) => {
    const load = await runWrk({ protocol: 'http', port }, MANY, seconds, surroundings.cores);
    return { requests: load.requests, failures: load.refused + load.failed };
  });
}

async function measureChurn(kind: ProxyKind, surroundings: Dependencies): Promise<Churn> {
  return await sampled(kind, surroundings, async (port, seconds) => {
    const { perSecond } = CHURN;
    const { samples, failed, p99Us } = await measureLatency(
      port,
      CHURN,
      seconds,
      surroundings.cores,
      perSecond,
    );
    return { requests: samples, failures: failed, perSecond, p99Us };
  });
}

/** A fresh proxy under `load` for the whole time, and what it held in each second of that. */
async function sampled<Figures extends object>(
  kind: ProxyKind,
  surroundings: Dependencies,
  load: (port: number, seconds: number) => Promise<Figures>,
): Promise<Figures & Pick<Soak, 'seconds' | 'anonymousBytes'>> {
  const proxy = await startProxy(kind, MANY, surroundings);
  const anonymousBytes: number[] = [];
  const timer = setInterval(() => anonymousBytes.push(memoryOf(proxy.pid).anonymousBytes), SAMPLE_MS);
  try {
    const seconds = Math.round(minutes * 60);
    return { ...(await load(proxy.port, seconds)), seconds, anonymousBytes };
  } finally {
    clearInterval(timer);
    await proxy.stop();
  }
}

/** After some load, so that what only first requests cost is not the stream's. */
async function measureStream(kind: ProxyKind, surroundings: Dependencies): Promise<Stream> {
  const proxy = await startProxy(kind, REFERENCE, surroundings);
  let timer: NodeJS.Timeout | undefined;
  try {
    await runWrk({ protocol: 'http', port: proxy.port }, REFERENCE, 3, surroundings.cores);
    await sleep(SAMPLE_MS);
    const anonymousBytesBefore = memoryOf(proxy.pid).anonymousBytes;
    let highest = anonymousBytesBefore;
    timer = setInterval(() => {
      highest = Math.max(highest, memoryOf(proxy.pid).anonymousBytes);
    }, STREAM_SAMPLE_MS);
    const beganAtMs = performance.now();
    const bytes = await readSlowly(proxy.port, '/1gb', STREAM_BYTES_PER_SECOND);
    if (bytes !== STREAM_BYTES) throw new Error(`the stream had ${bytes} bytes instead of ${STREAM_BYTES}`);
    const seconds = (performance.now() - beganAtMs) / 1000;
    return { bytes, seconds, anonymousBytesBefore, anonymousBytesHighest: highest };
  } finally {
    clearInterval(timer);
    await proxy.stop();
  }
}

function judge(soak: Soak, churn: Churn, stream: Stream): readonly Verdict[] {
  return [
    highest('anonymous memory, highest', soak),
    flat('its growth, 256 connections', soak),
    highest('anonymous memory of new connections, highest', churn),
    flat('its growth, 2 000 new connections a second', churn),
    bounded(
      'added by 1 GB through a slow reader',
      '≤ 8 MB',
      stream.anonymousBytesHighest - stream.anonymousBytesBefore,
      ADDED_BYTES,
      inMegabytes,
    ),
  ];
}

function highest(subject: string, { anonymousBytes }: Soak): Verdict {
  return bounded(subject, '≤ 45 MB', Math.max(...anonymousBytes), LOADED_BYTES, inMegabytes);
}

/** Growth is from the second fifth, when everything has been warm for long, to the last. */
function flat(subject: string, { anonymousBytes }: Soak): Verdict {
  const fifth = Math.ceil(anonymousBytes.length / 5);
  const growth = median(anonymousBytes.slice(-fifth)) - median(anonymousBytes.slice(fifth, 2 * fifth));
  return bounded(subject, '≤ 2 MB', growth, FLAT_BYTES, inMegabytes);
}

function inMegabytes(bytes: number): string {
  return `${megabytes(bytes)} MB`;
}

function printSoak(what: string, { requests, failures, anonymousBytes }: Soak): void {
  print(`${what}: ${requests} requests, ${failures} failed`);
  print(`anonymous MB by tenths of the time: ${tenths(anonymousBytes).map(megabytes).join(' ')}`);
}

/** Medians of the tenths. */
function tenths(samples: readonly number[]): number[] {
  const size = Math.max(1, Math.ceil(samples.length / 10));
  return Array.from({ length: Math.ceil(samples.length / size) }, (_, index) =>
    median(samples.slice(index * size, (index + 1) * size)),
  );
}

/** A soak that was shortened overwrites nothing that readers see. */
async function publish(result: MemoryResult): Promise<void> {
  const isWhole = minutes >= WHOLE_MINUTES && 'sidecar' in result.proxies;
  const directory = isWhole ? join(import.meta.dirname, 'results') : join(CACHE, 'results');
  const file = join(directory, `${runName(new Date(result.startedAt), result.machine)}-memory.json`);
  await mkdir(directory, { recursive: true });
  await writeFile(file, `${JSON.stringify(result)}\n`);
  print(relative(join(import.meta.dirname, '..'), file));
}
