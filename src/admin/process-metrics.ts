import { Counter, Gauge, type Registry } from '../prometheus.ts';
import { REVISION, VERSION } from '../version.ts';
import { readMemoryUse } from './memory.ts';

/** What is running, and what it costs: the names every Prometheus exporter uses. */
export function registerProcessMetrics(registry: Registry): void {
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
}
