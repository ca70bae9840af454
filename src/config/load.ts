/** Flags, environment and configuration file, in this order of precedence, to one frozen Config. */

import { LOG_LEVELS } from '../log/logger.ts';
import type { Config } from './config.ts';
import { readConfigFile } from './file.ts';
import type { FileConfig } from './file-schema.ts';
import { ConfigurationError, type Problem } from './problems.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { checkCredentials, resolveCredentials } from './resolve-credentials.ts';
import { resolveForwardProxy } from './resolve-forward-proxy.ts';
import { resolveInterception, withNamedHosts } from './resolve-interception.ts';
import { resolveLimits } from './resolve-limits.ts';
import { checkRoutes, resolveRoutes } from './resolve-routes.ts';
import { readValue } from './settings.ts';
import { EVERY_ADDRESS, hostNames, listenAddress, oneOf } from './values.ts';

/**
 * Resolves and checks everything, certificate files included.
 * @throws {ConfigurationError} with every problem there is.
 */
export async function loadConfig(given: ProxyValues): Promise<Config> {
  const problems: Problem[] = [];
  const { config: read, understood } =
    given.config === undefined
      ? { config: {} as FileConfig, understood: true }
      : await readConfigFile(given.config.text, given.config.key, problems);
  const file = withNamedHosts(read, given, problems);
  const routes = understood ? resolveRoutes(file, given, problems) : [];
  const forwardProxy = resolveForwardProxy(file.forwardProxy, problems);
  const interception = resolveInterception(file.interception, forwardProxy?.config, given, problems);
  const users = [...routes, ...(forwardProxy?.destinations ?? [])];
  const credentials = understood ? resolveCredentials(file, users, given, problems) : [];
  checkCredentials(credentials, users, problems);
  checkRoutes(routes, problems);

  const config: Config = {
    listen: readValue(given.listen, listenAddress, problems) ??
      file.listen ?? { host: '127.0.0.1', port: 15_080 },
    admin: {
      listen: readValue(given['admin-listen'], listenAddress, problems) ??
        file.admin?.listen ?? { host: EVERY_ADDRESS, port: 15_081 },
      hosts:
        readValue(given['admin-hosts'], hostNames, problems) ??
        file.admin?.hosts?.map((host) => host.toLowerCase()) ??
        [],
    },
    logLevel: readValue(given['log-level'], oneOf(LOG_LEVELS), problems) ?? file.logLevel ?? 'info',
    credentials: credentials.map(({ entry }) => entry),
    routes: routes.map(({ entry }) => entry),
    ...(forwardProxy === undefined ? {} : { forwardProxy: forwardProxy.config }),
    ...(interception === undefined ? {} : { interception }),
    crossSiteRequests: file.crossSiteRequests ?? 'allow',
    limits: resolveLimits(file.limits),
    shutdown: { drainTimeoutMs: file.shutdown?.drainTimeout ?? 25_000 },
  };
  if (problems.length > 0) throw new ConfigurationError(firstOfEachKey(problems));
  return deepFreeze(config);
}

/** A setting that was not understood would be reported a second time as missing. */
function firstOfEachKey(problems: readonly Problem[]): Problem[] {
  return problems.filter(({ key }, index) => problems.findIndex((other) => other.key === key) === index);
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value))
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  return Object.freeze(value);
}
