import { Counter, Gauge, type Registry } from '../../platform/prometheus.ts';
import type { ReloadResult } from './configuration-status.ts';

interface ReloadMetrics {
  /** The result of a changed file, or of a requested reading. */
  reloaded(result: ReloadResult): void;
}

/** The gauges' values at each scrape. */
interface ReloadGauges {
  readonly generation: number;
  /** Wall time at which it took effect. */
  readonly sinceMs: number;
  /** Whether the file's content is in use, or about to be. */
  readonly upToDate: boolean;
}

export function createReloadMetrics(registry: Registry, read: () => ReloadGauges): ReloadMetrics {
  const registers = [registry];
  const gauge = (name: string, help: string, value: (gauges: ReloadGauges) => number): void => {
    new Gauge({
      name: `token_sidecar_config_${name}`,
      help,
      registers,
      collect() {
        this.set(value(read()));
      },
    });
  };
  gauge('generation', 'Configurations that have been in use, the present one included.', (g) => g.generation);
  gauge(
    'applied_timestamp_seconds',
    'Unix time at which the configuration in use took effect.',
    ({ sinceMs }) => sinceMs / 1000,
  );
  gauge(
    'last_reload_successful',
    '1 while what the configuration file says is in use, 0 while it is not.',
    ({ upToDate }) => (upToDate ? 1 : 0),
  );
  const reloads = new Counter({
    name: 'token_sidecar_config_reload_total',
    help: 'Changes of the configuration file and requests to read it anew, by what came of them.',
    labelNames: ['result'],
    registers,
  });
  return { reloaded: (result) => reloads.inc({ result }) };
}
