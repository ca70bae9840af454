/** What a sidecar has from its start to its end, whatever its configuration becomes: names, and certificates for apps. */

import type { Config } from '../config/config.ts';
import { interceptedNames } from '../config/resolve-hosts.ts';
import type { Lookups } from '../platform/dns/dns-lookup.ts';
import { messageOf, SidecarError, systemCodeOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { ProxyOptions } from '../proxy/data-path.ts';
import type { LeafContexts } from '../proxy/tls/interception-ca.ts';

/** @throws {SidecarError} `configuration` where the directory cannot be written. */
export async function openLeaves(
  config: Config,
  clock: Clock,
  log: Logger,
): Promise<LeafContexts | undefined> {
  const { interception } = config;
  if (interception === undefined) return undefined;
  const { directory } = interception;
  const { openInterception } = await import('./interception.ts');
  try {
    return await openInterception({ directory, names: interceptedNames(config), clock, log });
  } catch (error) {
    throw new SidecarError(
      'configuration',
      `interception.directory ${directory}: expected a directory that can be written (${systemCodeOf(error) ?? messageOf(error)})`,
      { cause: error },
    );
  }
}

/** Hosts in whose place this program listens, so that DNS alone knows where they are; in lower case. */
export function namesByDns({ capture }: Config): ReadonlySet<string> {
  return new Set(capture?.hosts.map(({ host }) => host));
}

/**
 * How addresses are found where hosts are captured: this program listens at those that the hosts file has of them.
 * @throws {SidecarError} `configuration` where resolv.conf cannot be read.
 */
export async function openLookups(config: Config, clock: Clock): Promise<Lookups | undefined> {
  if (config.capture === undefined) return undefined;
  const { lookupsPastHostsFile } = await import('../platform/dns/dns-lookup.ts');
  try {
    return await lookupsPastHostsFile(namesByDns(config), clock);
  } catch (error) {
    throw new SidecarError(
      'configuration',
      `/etc/resolv.conf cannot be read, and captured hosts are found by DNS alone: ${systemCodeOf(error) ?? messageOf(error)}`,
      { cause: error },
    );
  }
}

/**
 * How the system is asked where redirected connections were going.
 * @throws {SidecarError} `configuration` where Node cannot ask it.
 */
export async function openRedirect({ redirect }: Config, log: Logger): Promise<ProxyOptions['findOriginal']> {
  if (redirect === undefined) return undefined;
  const { openOriginalDestination } = await import('../redirect/netfilter/original-destination.ts');
  const findOriginal = openOriginalDestination();
  log.info(
    { port: redirect.port },
    'redirected connections are served here, once `token-sidecar redirect` sends them',
  );
  return findOriginal;
}
