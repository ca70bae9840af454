import { readdirSync, readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { LogLosses } from '../platform/log/output.ts';
import { Counter, Gauge, type Registry } from '../platform/prometheus.ts';
import { REVISION, VERSION } from '../platform/version.ts';

interface AdminMetrics {
  connectionRefused(): void;
}

/** Under the names of every Prometheus exporter. */
export function registerProcessMetrics(
  registry: Registry,
  logLosses: LogLosses = { output: 0, repeated: 0 },
  nowMs: () => number = () => performance.now(),
): AdminMetrics {
  const registers = [registry];
  new Gauge({
    name: 'token_sidecar_build_info',
    help: 'Always 1; the labels say what is running.',
    labelNames: ['version', 'revision', 'node_version'],
    registers,
  }).set({ version: VERSION, revision: REVISION, node_version: process.version }, 1);

  new Gauge({
    name: 'process_start_time_seconds',
    help: 'Unix time at which the process started.',
    registers,
  }).set(performance.timeOrigin / 1000);

  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory.',
    registers,
    collect() {
      this.set(readMemoryUse().residentBytes);
    },
  });

  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'User and system CPU time spent.',
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });

  registerDescriptors(registry);
  registerEventLoop(registry, nowMs);

  new Counter({
    name: 'token_sidecar_log_lines_dropped_total',
    help: 'Log lines that were not printed: the output took no more, or there were many like them.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of ['output', 'repeated'] as const) this.inc({ reason }, logLosses[reason]);
    },
  });

  const dropped = new Counter({
    name: 'token_sidecar_admin_connections_dropped_total',
    help: 'Connections to the admin listener that were refused, because there were too many.',
    registers,
  });
  // Zero at first, so that the first event shows as an increase.
  dropped.inc(0);
  return { connectionRefused: () => dropped.inc() };
}

/** Zero outside Linux. */
function registerDescriptors(registry: Registry): void {
  const registers = [registry];
  new Gauge({
    name: 'process_open_fds',
    help: 'Open file descriptors.',
    registers,
    collect() {
      const open = ifThere(() => readdirSync('/proc/self/fd').length);
      // Without the directory being read.
      if (open !== undefined) this.set(open - 1);
    },
  });
  const most = /^Max open files\s+(\d+)/m.exec(
    ifThere(() => readFileSync('/proc/self/limits', 'latin1')) ?? '',
  );
  new Gauge({
    name: 'process_max_fds',
    help: 'The most file descriptors that may be open.',
    registers,
    collect() {
      if (most?.[1] !== undefined) this.set(Number(most[1]));
    },
  });
}

function ifThere<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

const NANOSECONDS = 1e9;

interface Window {
  readonly endedAtMs: number;
  readonly p99: number;
  readonly longest: number;
}

/** Readings closer together share a window. */
const WINDOW_MS = 15_000;

/** How long a window is reported, to every reader. */
const TOLD_MS = 60_000;

/** How long the event loop is busy at a stretch. Never wakes an idle loop. */
function registerEventLoop(registry: Registry, nowMs: () => number): void {
  // The interval counts only without sampling by iteration.
  const delays = monitorEventLoopDelay({ samplePerIteration: true, resolution: 1000 });
  delays.enable();
  let beganAtMs = nowMs();
  let ended: readonly Window[] = [];
  const quantile = new Gauge({
    name: 'nodejs_eventloop_lag_p99_seconds',
    help: 'The 99th percentile of the delays of the event loop, the highest of the windows of the last minute.',
    registers: [registry],
    collect() {
      const endedAtMs = nowMs();
      const isEmpty = delays.count === 0;
      const current: Window = {
        endedAtMs,
        p99: isEmpty ? 0 : delays.percentile(99) / NANOSECONDS,
        longest: isEmpty ? 0 : delays.max / NANOSECONDS,
      };
      ended = ended.filter((window) => endedAtMs - window.endedAtMs < TOLD_MS);
      const told = [...ended, current];
      quantile.set(Math.max(...told.map(({ p99 }) => p99)));
      longest.set(Math.max(...told.map((window) => window.longest)));
      if (endedAtMs - beganAtMs < WINDOW_MS) return;
      ended = told;
      beganAtMs = endedAtMs;
      delays.reset();
    },
  });
  const longest = new Gauge({
    name: 'nodejs_eventloop_lag_max_seconds',
    help: 'The longest delay of the event loop in the last minute, or since the last reading if that is longer ago.',
    registers: [registry],
  });
}

interface MemoryUse {
  readonly residentBytes: number;
  /** Without program text or files; undefined outside Linux. */
  readonly anonymousBytes: number | undefined;
}

/** From proc(5). */
export function readMemoryUse(): MemoryUse {
  return { residentBytes: process.memoryUsage.rss(), anonymousBytes: readAnonymousBytes() };
}

function readAnonymousBytes(): number | undefined {
  let status: string;
  try {
    status = readFileSync('/proc/self/status', 'latin1');
  } catch {
    return undefined;
  }
  const kibibytes = /^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1];
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
}
