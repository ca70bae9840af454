import type { KubernetesApi } from '../../platform/kubernetes/api.ts';
import type { Logger } from '../../platform/log/logger.ts';
import { type BackoffOptions, backoffMs, sleep } from '../../platform/time/async.ts';
import type { Cluster, ClusterVersion } from '../pod/cluster.ts';

/** Clusters are upgraded. */
const READ_INTERVAL_MS = 600_000;

interface LiveClusterVersion {
  current(): Cluster;
  close(): void;
}

/** Unknown until the API server's first answer. */
export function watchClusterVersion(
  api: KubernetesApi,
  { clock, random, log }: BackoffOptions & { readonly log: Logger },
): LiveClusterVersion {
  const abort = new AbortController();
  let current: Cluster = {};

  async function run(): Promise<void> {
    for (let failures = 0; !abort.signal.aborted; ) {
      try {
        const version = parseVersion(await api.request<VersionInfo>('GET', '/version'));
        failures = 0;
        if (version === undefined) log.warn('the API server says no version that is understood');
        else current = { version };
        await sleep(clock, READ_INTERVAL_MS, abort.signal);
      } catch (error) {
        failures++;
        log.warn({ err: error, failures }, "the cluster's version cannot be read");
        await sleep(clock, backoffMs(failures, random), abort.signal);
      }
    }
  }

  void run();
  return { current: () => current, close: () => abort.abort() };
}

interface VersionInfo {
  readonly major: string;
  readonly minor: string;
}

/** Some clusters write a minor version as `29+`. */
function parseVersion({ major, minor }: VersionInfo): ClusterVersion | undefined {
  const parsed = { major: Number.parseInt(major, 10), minor: Number.parseInt(minor, 10) };
  return Number.isNaN(parsed.major) || Number.isNaN(parsed.minor) ? undefined : parsed;
}
