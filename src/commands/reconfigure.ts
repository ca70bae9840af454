/** How a running sidecar goes over to another configuration. Loaded only where a file is followed. */

import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import { type Logger, setLogLevel } from '../log/logger.ts';
import { forgetSeries, type Registry } from '../prometheus.ts';
import type { DataPath, Superseded } from '../proxy/data-path.ts';
import type { Reconfigurable, ReconfigureOptions } from '../reload/follow-file.ts';
import type { TokenMetrics } from '../token/metrics.ts';
import { type InUse, servingOf } from './in-use.ts';
import { missingToken } from './sidecar-health.ts';
import type { OpenCredential, TokenSources } from './token-sources.ts';

export interface ReconfigurableOptions {
  readonly inUse: () => InUse;
  /** Called when the data path serves by it already. */
  readonly use: (next: InUse) => void;
  readonly sources: TokenSources;
  readonly proxy: DataPath;
  readonly tokenMetrics: TokenMetrics;
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

  async function reconfigure(config: Config, { abandoned, onWait }: ReconfigureOptions): Promise<boolean> {
    const before = inUse();
    const credentials = await sources.open(config.credentials, before.credentials);
    const known = new Set(before.credentials.map(({ source }) => source));
    const fresh = credentials.filter(({ source }) => !known.has(source));
    const closeFresh = () => sources.close(fresh.map(({ source }) => source));
    let superseded: Superseded;
    try {
      if (fresh.length > 0) {
        onWait(() => fresh.flatMap(missingToken).map(({ name, detail }) => `credential ${name}: ${detail}`));
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
    void takeLeave(before, superseded);
    return true;
  }

  /** Resolves once those that are required have a token, and the others have had their time; or where it is abandoned. */
  async function allGranted(fresh: readonly OpenCredential[], abandoned: AbortSignal): Promise<void> {
    const over = new Promise<void>((resolve) => {
      if (abandoned.aborted) resolve();
      else abandoned.addEventListener('abort', () => resolve(), { once: true });
    });
    const granted = fresh.map(({ config, source }) =>
      config.required === false ? within(source.firstToken, OPTIONAL_WAIT_MS) : source.firstToken,
    );
    await Promise.race([over, Promise.all(granted)]);
  }

  /** What the requests under way began with ends with them; what is counted by names that are gone ends, too. */
  async function takeLeave(before: InUse, superseded: Superseded): Promise<void> {
    await within(superseded.whenUnused(), LONGEST_FAREWELL_MS);
    const kept = new Set(inUse().credentials.map(({ source }) => source));
    await sources.close(before.credentials.map(({ source }) => source).filter((source) => !kept.has(source)));
    const names = new Set(inUse().config.credentials.map(({ name }) => name));
    for (const { name } of before.config.credentials) {
      if (names.has(name)) continue;
      options.tokenMetrics.forget(name);
      await forgetSeries(options.registry, 'credential', name);
    }
  }

  /** Resolves with the promise, at the latest after `boundMs`. */
  function within(promise: Promise<void>, boundMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.after(boundMs, resolve);
      void promise.then(() => {
        cancel();
        resolve();
      });
    });
  }

  return { config: () => inUse().config, reconfigure };
}
