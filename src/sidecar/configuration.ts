import type { NamedAddress } from '../config/address-conflicts.ts';
import type { CommandContext } from '../config/command.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { PROXY_SETTINGS, type ProxyValues } from '../config/proxy-settings.ts';
import { type IgnoredVariable, resolveTracing, type TracingConfig } from '../config/resolve-tracing.ts';
import type { Settings } from '../config/settings.ts';
import { sidecarListeners } from '../config/sidecar-listeners.ts';
import type { Lookups } from '../platform/dns/dns-lookup.ts';
import { messageOf, SidecarError, systemCodeOf } from '../platform/errors.ts';
import { formatAddress, type ListenAddress } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { ServingOptions } from '../proxy/data-path.ts';
import type { OpenCredential } from './token-sources.ts';

export interface SidecarConfiguration {
  readonly config: Config;
  /** Undefined if nobody asks for traces. */
  readonly tracing: TracingConfig | undefined;
  readonly ignored: readonly IgnoredVariable[];
}

/**
 * @param found problems so far, to be reported with the rest.
 * @param text of the configuration file, if already read.
 * @throws {ConfigurationError} with every problem.
 */
export async function loadSidecarConfiguration(
  given: ProxyValues,
  env: CommandContext['env'],
  found: readonly Problem[],
  text?: string,
): Promise<SidecarConfiguration> {
  const problems = [...found];
  const ignored: IgnoredVariable[] = [];
  const tracing = resolveTracing(env, problems, ignored);
  return { config: await loadConfig(given, problems, text), tracing, ignored };
}

/** @throws {SidecarError} `configuration` if resolv.conf cannot be read. */
export async function openLookups({ capture }: Config, clock: Clock): Promise<Lookups | undefined> {
  if (capture === undefined) return undefined;
  const { lookupsPastHostsFile } = await import('../platform/dns/dns-lookup.ts');
  try {
    return await lookupsPastHostsFile(new Set(capture.hosts.map(({ host }) => host)), clock);
  } catch (error) {
    throw new SidecarError(
      'configuration',
      `/etc/resolv.conf cannot be read, and captured hosts are found by DNS alone: ${systemCodeOf(error) ?? messageOf(error)}`,
      { cause: error },
    );
  }
}

/** Replaced together. */
export interface InUse {
  readonly config: Config;
  /** In the order of `config.credentials`. */
  readonly credentials: readonly OpenCredential[];
}

export function servingOf({ config, credentials }: InUse): ServingOptions {
  const { routes, forwardProxy, capture, redirect, crossSiteRequests, limits, accessLog, gateway } = config;
  return {
    routes,
    ...(forwardProxy === undefined ? {} : { forwardProxy }),
    ...(capture === undefined ? {} : { capture }),
    ...(redirect === undefined ? {} : { redirect }),
    crossSiteRequests,
    limits,
    ...(accessLog === undefined ? {} : { accessLog }),
    ...(gateway === undefined ? {} : { callers: gateway.callers }),
    bearers: new Map(credentials.map(({ source }) => [source.name, source])),
  };
}

export function namedListeners(config: Config, given: ProxyValues): NamedAddress[] {
  return sidecarListeners(config).map(({ key, flag, address, mayLack }) => ({
    key: flag === undefined ? key : namedBy(flag, key, address, given),
    address,
    ...(mayLack ? { mayLack } : {}),
  }));
}

/** The flag is also named for a default, since it is how to choose another. */
function namedBy(
  flag: keyof typeof PROXY_SETTINGS,
  key: string,
  address: ListenAddress,
  given: ProxyValues,
): string {
  const setting: Settings[string] = PROXY_SETTINGS[flag];
  const isDefault = [formatAddress(address), String(address.port)].includes(setting.default ?? '');
  return given[flag]?.key ?? (given.config === undefined || isDefault ? `--${flag}` : key);
}
