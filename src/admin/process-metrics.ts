import type { LogLosses } from '../log/output.ts';
import { Counter, Gauge, type Registry } from '../prometheus.ts';
import { REVISION, VERSION } from '../version.ts';
import { readMemoryUse } from './memory.ts';

/** What the admin listener tells of itself. */
export interface AdminMetrics {
  connectionDropped(): void;
}

/** What is running, and what it costs: the names every Prometheus exporter uses. */
export function registerProcessMetrics(
  registry: Registry,
  logLosses: LogLosses = { output: 0, repeated: 0 },
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
    help: 'Connections to the admin listener that gave way to others, because there were too many.',
    registers,
  });
  // From zero on, so that the first one is seen as an increase.
  dropped.inc(0);
  return { connectionDropped: () => dropped.inc() };
}
