/** How the configuration in use relates to the file's content, for people and as metrics. */

import { Counter, Gauge, type Registry } from '../../platform/prometheus.ts';

/** The result of reading the file again. */
type ReloadResult =
  /** It is in use. */
  | 'success'
  /** It equals the configuration in use. */
  | 'unchanged'
  /** It has mistakes. */
  | 'invalid'
  /** It changes what only a restart can. */
  | 'restart_required'
  /** A new credential in it has no token yet. */
  | 'token_unavailable';

export type Standing =
  | { readonly state: 'current' }
  /** For the tokens of its new credentials; overdue after a while. */
  | {
      readonly state: 'waiting';
      readonly sinceMs: number;
      readonly overdue: boolean;
      /** A sentence for each credential. */
      readonly missing: () => readonly string[];
    }
  /** The previous configuration stays in use. */
  | {
      readonly state: 'refused';
      readonly atMs: number;
      readonly result: 'invalid' | 'restart_required';
      /** For a person, in lines; holds no secret. */
      readonly report: string;
    };

export interface ConfigurationStatus {
  readonly file: string;
  /** 1 for the one that the program was started with. */
  readonly generation: number;
  /** Wall time at which it took effect. */
  readonly sinceMs: number;
  readonly standing: Standing;
}

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
