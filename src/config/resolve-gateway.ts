/** Callers of other pods, and their routes. */

import { dirname } from 'node:path';
import { EVERY_ADDRESS } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { CallerLimits, CallerMatch, GatewayCaller, GatewayConfig, RouteConfig } from './config.ts';
import { checkUnique, type Keyed, keyed } from './entries.ts';
import type { FileConfig, GatewayCallerEntry } from './file-schema.ts';

/** One caller's part of the requests in flight. */
const PART_OF_ALL = 1 / 4;

const DEFAULT_AUDIENCE = 'token-sidecar-gateway';

const DEFAULT_DRAIN_DELAY_MS = 5000;

/** Anyone who reached a gateway could use them. */
const OF_SIDECARS = ['forwardProxy', 'capture', 'redirect', 'tokenEndpoint', 'interception'] as const;

interface GatewayNeighbours {
  readonly routes: readonly Keyed<RouteConfig>[];
  readonly maxInFlight: number;
}

export function resolveGateway(
  file: FileConfig,
  { routes, maxInFlight }: GatewayNeighbours,
  problems: Problem[],
): GatewayConfig | undefined {
  const entry = file.gateway;
  if (entry === undefined) return undefined;
  for (const key of OF_SIDECARS) {
    if (file[key] === undefined) continue;
    const expected = 'nothing of it beside gateway, which serves routes alone';
    problems.push({ key, expected, code: 'conflicting_settings' });
  }
  for (const [index, { output }] of (file.credentials ?? []).entries()) {
    if (output === undefined) continue;
    const expected = 'nothing of it beside gateway: no app is there to be given a token';
    problems.push({ key: `credentials[${index}].output`, expected, code: 'conflicting_settings' });
  }
  const { certFile, keyFile } = entry.tls ?? {};
  for (const [key, given, expected] of [
    ['gateway.tls.certFile', certFile, 'the path of a PEM certificate'],
    ['gateway.tls.keyFile', keyFile, 'the path of its PEM private key'],
  ] as const) {
    if (given === undefined) problems.push({ key, expected });
  }
  if (certFile !== undefined && keyFile !== undefined && dirname(certFile) !== dirname(keyFile)) {
    const expected = 'a file in the directory of certFile: a mounted Secret changes as a whole';
    problems.push({ key: 'gateway.tls.keyFile', value: keyFile, expected });
  }
  const { clientCaFile, serviceAccountTokens: tokens } = entry;
  if (clientCaFile === undefined && tokens === undefined) {
    const expected =
      'the path of PEM authorities that sign client certificates, or serviceAccountTokens beside it';
    problems.push({ key: 'gateway.clientCaFile', expected });
  }
  const entries = keyed<GatewayCallerEntry>('gateway.callers', entry.callers);
  checkUnique(entries, problems);
  const allowable = allowableOf(routes);
  const most = Math.max(1, Math.floor(maxInFlight * PART_OF_ALL));
  return {
    listen: entry.listen ?? { host: EVERY_ADDRESS, port: 15_443 },
    tls: { certFile: certFile ?? '', keyFile: keyFile ?? '' },
    ...(clientCaFile === undefined ? {} : { clientCaFile }),
    ...(tokens === undefined
      ? {}
      : { serviceAccountTokens: { audience: tokens.audience ?? DEFAULT_AUDIENCE } }),
    callers: entries.map((one) => {
      checkProvable(one, entry, problems);
      return resolveCaller(one, allowable, most, problems);
    }),
    drainDelayMs: entry.drainDelay ?? DEFAULT_DRAIN_DELAY_MS,
  };
}

/** Indexed, since entries may be thousands. */
interface Allowable {
  readonly names: ReadonlySet<string>;
  /** Lists names of routes. */
  readonly byCredential: ReadonlyMap<string, readonly string[]>;
}

function allowableOf(routes: GatewayNeighbours['routes']): Allowable {
  const byCredential = new Map<string, string[]>();
  for (const { entry } of routes) {
    const users = byCredential.get(entry.credential);
    if (users === undefined) byCredential.set(entry.credential, [entry.name]);
    else users.push(entry.name);
  }
  return { names: new Set(routes.map(({ entry }) => entry.name)), byCredential };
}

function resolveCaller(
  { key, entry }: Keyed<GatewayCallerEntry>,
  { names, byCredential }: Allowable,
  mostInFlight: number,
  problems: Problem[],
): GatewayCaller {
  const allowed = new Set<string>();
  for (const [index, name] of (entry.allowedRoutes ?? []).entries()) {
    if (names.has(name)) allowed.add(name);
    else
      problems.push({ key: `${key}.allowedRoutes[${index}]`, value: name, expected: 'the name of a route' });
  }
  for (const [index, name] of (entry.allowedCredentials ?? []).entries()) {
    const users = byCredential.get(name);
    for (const route of users ?? []) allowed.add(route);
    if (users !== undefined) continue;
    const expected = 'the name of a credential that a route uses';
    problems.push({ key: `${key}.allowedCredentials[${index}]`, value: name, expected });
  }
  if (allowed.size === 0 && entry.allowedRoutes === undefined && entry.allowedCredentials === undefined) {
    problems.push({
      key: `${key}.allowedRoutes`,
      expected: 'names of routes, or allowedCredentials beside it',
    });
  }
  return {
    name: entry.name,
    match: matchOf(entry.match),
    routes: [...allowed],
    limits: limitsOf(key, entry.limits, mostInFlight, problems),
  };
}

/** An entry is useless if its callers cannot prove who they are. */
function checkProvable(
  { key, entry: { match } }: Keyed<GatewayCallerEntry>,
  { clientCaFile, serviceAccountTokens }: NonNullable<FileConfig['gateway']>,
  problems: Problem[],
): void {
  const [by, needed, isThere] =
    match.serviceAccount === undefined
      ? (['certificate', 'clientCaFile', clientCaFile !== undefined] as const)
      : (['serviceAccount', 'serviceAccountTokens', serviceAccountTokens !== undefined] as const);
  if (isThere) return;
  const expected = `gateway.${needed} beside it: nobody could prove to be such a caller`;
  problems.push({ key: `${key}.match.${match.spiffe === undefined ? by : 'spiffe'}`, expected });
}

function matchOf({ serviceAccount, spiffe, certificate = '' }: GatewayCallerEntry['match']): CallerMatch {
  if (serviceAccount !== undefined) {
    const [namespace = '', name = ''] = serviceAccount.split('/');
    return { kind: 'service_account', namespace, serviceAccount: name };
  }
  return spiffe === undefined ? { kind: 'certificate', name: certificate } : { kind: 'spiffe', uri: spiffe };
}

function limitsOf(
  key: string,
  limits: GatewayCallerEntry['limits'],
  mostInFlight: number,
  problems: Problem[],
): CallerLimits {
  const { inFlight, requestsPerSecond, burst, connections } = limits ?? {};
  if (burst !== undefined && requestsPerSecond === undefined) {
    const expected = 'requestsPerSecond beside it';
    problems.push({
      key: `${key}.limits.burst`,
      value: String(burst),
      expected,
      code: 'setting_without_use',
    });
  }
  return {
    inFlight: inFlight ?? mostInFlight,
    ...(requestsPerSecond === undefined ? {} : { requestsPerSecond }),
    burst: burst ?? requestsPerSecond ?? 1,
    ...(connections === undefined ? {} : { connections }),
  };
}
