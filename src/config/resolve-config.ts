/** Combines configuration file, flags and environment. Pure, so that it can be checked where its files are absent. */

import { LOG_LEVELS } from '../platform/log/logger.ts';
import { EVERY_ADDRESS } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { Config } from './config.ts';
import type { FileReading } from './file.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { checkCredentials, checkSubjects, resolveCredentials } from './resolve-credentials.ts';
import { resolveGateway } from './resolve-gateway.ts';
import {
  resolveCapture,
  resolveForwardProxy,
  resolveInterception,
  resolveRedirect,
  withNamedHosts,
} from './resolve-hosts.ts';
import { resolveAccessLog, resolveLimits } from './resolve-limits.ts';
import { checkOutputs, resolveTokenEndpoint } from './resolve-outputs.ts';
import { checkPlaceholders } from './resolve-policy.ts';
import { checkRoutes, resolveRoutes } from './resolve-routes.ts';
import { readValue } from './settings.ts';
import { checkListeners } from './sidecar-listeners.ts';
import { hostNames, listenAddress, oneOf } from './values.ts';

/** Every setting resolved and checked. Mistakes are added to `problems`; the result is right only if there are none. */
export function resolveConfig(
  { config: read, understood }: FileReading,
  given: ProxyValues,
  problems: Problem[],
): Config {
  const file = withNamedHosts(read, given, problems);
  const routes = understood ? resolveRoutes(file, given, problems) : [];
  const forwardProxy = resolveForwardProxy(file.forwardProxy, problems);
  const capture = resolveCapture(file.capture, given, problems);
  const redirect = resolveRedirect(file.redirect, given, problems);
  const interceptors = {
    ...(forwardProxy === undefined ? {} : { forwardProxy: forwardProxy.config }),
    ...(capture === undefined ? {} : { capture: capture.config }),
    ...(redirect === undefined ? {} : { redirect: redirect.config }),
  };
  const interception = resolveInterception(file.interception, interceptors, given, problems);
  const users = [
    ...routes,
    ...(forwardProxy?.destinations ?? []),
    ...(capture?.hosts ?? []),
    ...(redirect?.hosts ?? []),
  ];
  const credentials = understood ? resolveCredentials(file, users, given, problems) : [];
  checkCredentials(file, credentials, users, problems);
  checkSubjects(credentials, users, problems);
  checkOutputs(credentials, problems);
  const tokenEndpoint = resolveTokenEndpoint(file.tokenEndpoint, credentials, problems);
  const accessLog = resolveAccessLog(file, given, problems);
  checkRoutes(routes, problems);
  checkPlaceholders(users, problems);
  const limits = resolveLimits(file.limits);
  const gateway = resolveGateway(file, { routes, maxInFlight: limits.maxInFlight }, problems);

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
    ...interceptors,
    ...(gateway === undefined ? {} : { gateway }),
    ...(interception === undefined ? {} : { interception }),
    ...(tokenEndpoint === undefined ? {} : { tokenEndpoint }),
    ...(accessLog === undefined ? {} : { accessLog }),
    crossSiteRequests: file.crossSiteRequests ?? 'allow',
    limits,
    shutdown: { drainTimeoutMs: file.shutdown?.drainTimeout ?? 25_000 },
  };
  checkListeners(config, given, problems);
  return config;
}
