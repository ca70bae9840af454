/** Flags, environment and configuration file, in this order of precedence, to one frozen Config. */

import { LOG_LEVELS } from '../platform/log/logger.ts';
import { EVERY_ADDRESS } from '../platform/net/address.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { nextTurn } from '../platform/time/async.ts';
import type { Config } from './config.ts';
import type { FileReading } from './file.ts';
import type { FileConfig } from './file-schema.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { withoutFollowUps } from './report.ts';
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
import type { SourceText } from './source-text.ts';
import { checkTlsFiles, type GatewayFiles } from './tls-files.ts';
import { hostNames, listenAddress, oneOf } from './values.ts';

/**
 * Resolves and checks everything, certificate files included.
 * @param found problems so far, to be reported with the rest.
 * @param text of the file, if already read.
 * @throws {ConfigurationError} with every problem.
 */
export async function loadConfig(
  given: ProxyValues,
  found: readonly Problem[] = [],
  text?: string,
  gatewayFiles: GatewayFiles = 'judged',
): Promise<Config> {
  const problems: Problem[] = [...found];
  const reading = await readFile(given, problems, text);
  await checkTlsFiles(reading.config, problems, gatewayFiles);
  await nextTurn();
  const config = resolveConfig(reading, given, problems);
  if (problems.length > 0) {
    const source = await reading.source?.();
    throw new ConfigurationError(withoutFollowUps(problems).map(placed(source)));
  }
  await nextTurn();
  return deepFreeze(config);
}

async function readFile(
  { config }: ProxyValues,
  problems: Problem[],
  text: string | undefined,
): Promise<FileReading> {
  if (config === undefined) return { config: {} as FileConfig, understood: true };
  const { readConfigFile } = await import('./file.ts');
  return readConfigFile(config.text, config.key, problems, text);
}

/** Adds to problems that were found later their places in the file; unchanged if the file could not be read. */
export async function placedInFile(
  problems: readonly Problem[],
  { path, text }: { readonly path: string; readonly text: string | undefined },
): Promise<Problem[]> {
  if (text === undefined) return [...problems];
  const { parseConfig } = await import('./file.ts');
  const { source } = await parseConfig(text, path, []);
  return problems.map(placed(await source?.()));
}

/** Adds its place in the file, if it has one. */
function placed(source: SourceText | undefined): (problem: Problem) => Problem {
  return (problem) => {
    const of = problem.value === undefined ? 'key' : 'value';
    const place = problem.place ?? source?.find(problem.key, of);
    return place === undefined ? problem : { ...problem, place };
  };
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value))
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  return Object.freeze(value);
}

/**
 * Every setting resolved and checked. Pure, so that it can be checked where its files are absent. Mistakes are added to
 * `problems`; the result is right only if there are none.
 */
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
