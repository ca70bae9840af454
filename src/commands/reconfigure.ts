/** How a running sidecar goes over to another configuration. Loaded only where a file is followed. */

import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import { type Logger, setLogLevel } from '../log/logger.ts';
import { forgetSeries, type Registry } from '../prometheus.ts';
import type { DataPath, Superseded } from '../proxy/data-path.ts';
import type { ProxyMetrics } from '../proxy/metrics.ts';
import type { Reconfigurable, ReconfigureOptions, WaitedFor } from '../reload/follow-file.ts';
import type { TokenMetrics } from '../token/metrics.ts';
import { within } from '../within.ts';
import { credentialOf, isAbout, routeNamesOf, routeOf, subjectsGone } from './gone-series.ts';
import { type InUse, servingOf } from './in-use.ts';
import { withoutToken } from './sidecar-health.ts';
import type { OpenCredential, TokenSources } from './token-sources.ts';

export interface ReconfigurableOptions {
  readonly inUse: () => InUse;
  /** Called when the data path serves by it already. */
  readonly use: (next: InUse) => void;
  readonly sources: TokenSources;
  readonly proxy: DataPath;
  readonly tokenMetrics: TokenMetrics;
  readonly proxyMetrics: ProxyMetrics;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How long the token of a credential is waited for that the pod can do without. */
export const OPTIONAL_WAIT_MS = 30_000;

/** How long a credential that is no longer configured is kept for requests that began with it. */
export const LONGEST_FAREWELL_MS = 300_000;

export function reconfigurable(options: ReconfigurableOptions): Reconfigurable {
  const { inUse, use, sources, proxy, clock, log } = options;
  /** What requests that are under way began with; none is in use any more. */
  const leaving = new Set<InUse>();
  /** What is about to be in use, and counts already. */
  const coming = new Set<Config>();
  let forgetting: Promise<void> = Promise.resolve();

  async function reconfigure(config: Config, reconfigureOptions: ReconfigureOptions): Promise<boolean> {
    // Before what is being forgotten is waited for: whatever is to be forgotten after that leaves out what is coming.
    coming.add(config);
    await forgetting;
    let isTaken = false;
    try {
      isTaken = await takeIntoUse(config, reconfigureOptions);
      return isTaken;
    } finally {
      coming.delete(config);
      if (!isTaken) void forget(config);
    }
  }

  async function takeIntoUse(config: Config, { abandoned, onWait }: ReconfigureOptions): Promise<boolean> {
    const before = inUse();
    const credentials = await sources.open(config.credentials, before.credentials);
    const known = new Set(before.credentials.map(({ source }) => source));
    const fresh = credentials.filter(({ source }) => !known.has(source));
    const closeFresh = () => sources.close(fresh.map(({ source }) => source));
    let superseded: Superseded;
    try {
      if (fresh.length > 0) {
        onWait(waitedFor(fresh));
        await allGranted(fresh, abandoned);
      }
      if (abandoned.aborted) {
        await closeFresh();
        return false;
      }
      superseded = await proxy.reconfigure(servingOf({ config, credentials }));
    } catch (error) {
      await closeFresh();
      throw error;
    }
    use({ config, credentials });
    if (config.logLevel !== before.config.logLevel) setLogLevel(log, config.logLevel);
    takeLeave(before, superseded).catch((error: unknown) => {
      log.error({ err: error }, 'a configuration that is no longer in use was not put away');
    });
    return true;
  }

  /** Resolves once those that are required have a token, and the others have had their time; or where it is abandoned. */
  async function allGranted(fresh: readonly OpenCredential[], abandoned: AbortSignal): Promise<void> {
    const over = new Promise<void>((resolve) => {
      if (abandoned.aborted) resolve();
      else abandoned.addEventListener('abort', () => resolve(), { once: true });
    });
    const granted = fresh.map(({ config, source }) =>
      config.required === false ? within(OPTIONAL_WAIT_MS, source.firstToken, clock) : source.firstToken,
    );
    await Promise.race([over, Promise.all(granted)]);
  }

  /** What the requests under way began with ends with them; what is counted by names that are gone ends, too. */
  async function takeLeave(before: InUse, { whenUnused }: Superseded): Promise<void> {
    leaving.add(before);
    let isUnused = false;
    const unused = whenUnused().then(() => {
      isUnused = true;
    });
    await within(LONGEST_FAREWELL_MS, unused, clock);
    leaving.delete(before);
    // What another that is leaving shares with it ends with that one.
    const kept = new Set(users().flatMap(({ credentials }) => credentials.map(({ source }) => source)));
    await sources.close(before.credentials.map(({ source }) => source).filter((source) => !kept.has(source)));
    await forget(before.config);
    if (isUnused) return;
    // Routes count for as long as requests of theirs are under way.
    await unused;
    await forget(before.config);
  }

  /**
   * However often names change, there are no more series than names in use. One at a time, and never while another is taken
   * into use. Never rejects: series that stay are no reason to keep the next configuration out.
   */
  function forget(before: Config): Promise<void> {
    forgetting = forgetting.then(async () => {
      try {
        await forgetGone(before);
      } catch (error) {
        log.error({ err: error }, 'series of what is no longer configured stay in the metrics');
      }
    });
    return forgetting;
  }

  async function forgetGone(before: Config): Promise<void> {
    const { registry, tokenMetrics, proxyMetrics } = options;
    const gone = new Set(subjectsGone(before, [...users().map(({ config }) => config), ...coming]));
    for (const { name } of before.credentials) if (gone.has(credentialOf(name))) tokenMetrics.forget(name);
    for (const name of routeNamesOf(before)) {
      if (gone.has(routeOf(name)) && !proxyMetrics.forget(name)) gone.delete(routeOf(name));
    }
    if (gone.size > 0) await forgetSeries(registry, (labels) => isAbout(gone, labels));
  }

  function users(): InUse[] {
    return [inUse(), ...leaving];
  }

  return { config: () => inUse().config, reconfigure };
}

/** Tokens of these, a sentence for each that is not there yet. */
function waitedFor(fresh: readonly OpenCredential[]): WaitedFor {
  const sentences = (isRequired: boolean, bound: string) => () =>
    fresh
      .filter(({ config }) => (config.required !== false) === isRequired)
      .flatMap(withoutToken)
      .map(({ name, detail }) => `credential ${name}${bound}: ${detail}`);
  return {
    required: sentences(true, ''),
    optional: sentences(false, `, for ${OPTIONAL_WAIT_MS / 1000} s at most`),
  };
}
