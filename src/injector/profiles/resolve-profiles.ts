import type { Config, Upstream } from '../../config/config.ts';
import { LruMap } from '../../platform/limits/lru-map.ts';
import { isLoopbackHost } from '../../platform/net/address.ts';
import type { Problem } from '../../platform/problems.ts';
import { isAllowedHost, limitsHosts } from '../pod/allow-lists.ts';
import { ANNOTATION, type SidecarMode } from '../pod/annotations.ts';
import type { ProfileRequest, ProfileResolution, Profiles } from '../pod/cluster.ts';
import { throughBroker } from './broker-credentials.ts';
import { findProfiles } from './find-profiles.ts';
import { called, type ProfileSource, type ValidProfile } from './profile.ts';
import {
  credentialSources,
  type FilesOf,
  mostSpecificFirst,
  type Owned,
  type ProfileEntries,
  planMounts,
  profileEntries,
  withMounts,
} from './profile-entries.ts';
import { findConflicts, type OwnedProblem, overridden, resolveEntries } from './resolve-entries.ts';

/** Characters. A pod's annotations share 256 KiB. */
const MAX_CONFIGURATION_LENGTH = 128 * 1024;

/** Comparisons take time, and host names share one certificate. */
export const MAX_TOGETHER = { credentials: 32, routes: 128, hosts: 100 };

type Limits = ProfileRequest['defaults'];

export function createProfiles(source: ProfileSource, filesOf: FilesOf): Profiles {
  const known = rememberResolutions();
  return {
    resolve({ names, namespace, serviceAccount, overrides, defaults }) {
      const problems: Problem[] = [];
      const profiles = findProfiles(names, { namespace, serviceAccount }, source, problems);
      if (problems.length > 0) return { state: 'refused', problems };
      return known.of(profiles, overrides, defaults, () =>
        resolveProfiles(profiles, overrides, defaults, filesOf),
      );
    },
  };
}

function resolveProfiles(
  profiles: readonly ValidProfile[],
  overrides: ProfileRequest['overrides'],
  defaults: Limits,
  filesOf: FilesOf,
): ProfileResolution {
  const problems: Problem[] = [];
  const warnings: string[] = [];
  const written = joined(profiles.map(profileEntries));
  const crowded = tooManyTogether(written);
  if (crowded.length > 0) return { state: 'refused', problems: crowded };
  problems.push(...collisions(written));
  const mounts = planMounts();
  const own = overridden(written, overrides, defaults.allowInsecureTokenUrl, problems);
  const asPodsHaveThem = own.credentials.map((each) =>
    throughBroker(each, defaults.broker, mounts, problems),
  );
  const entries = mostSpecificFirst(withMounts({ ...own, credentials: asPodsHaveThem }, mounts));
  const mode = modeOf(profiles, entries, problems);
  problems.push(
    ...forbiddenTls(profiles, defaults),
    ...forbiddenStatic(entries, overrides, defaults),
    ...forbiddenOutputs(entries, overrides, defaults),
  );
  if (problems.length > 0) return { state: 'refused', problems };

  const found: OwnedProblem[] = [];
  const { file, config } = resolveEntries(entries, found);
  problems.push(...found.map((problem) => named(problem)));
  if (config === undefined) return { state: 'refused', problems };
  entries.credentials.forEach((credential, index) => {
    const resolved = config.credentials[index];
    if (resolved === undefined) return;
    const own: Problem[] = [];
    const sources = credentialSources(credential, resolved, filesOf, own);
    problems.push(...own.map((problem) => named({ ...problem, of: credential })));
    mounts.credential(resolved.directory, sources);
    if (credential.secret !== undefined) mounts.needs(credential.secret.name);
  });
  problems.push(...forbiddenHosts(entries, config, defaults));
  warnings.push(...clearTextWarnings(entries, config));

  const configuration = JSON.stringify(file);
  if (configuration.length > MAX_CONFIGURATION_LENGTH) {
    const expected = `profiles of at most ${MAX_CONFIGURATION_LENGTH} characters together`;
    problems.push({ key: ANNOTATION.profile, value: String(configuration.length), expected });
  }
  if (problems.length > 0) return { state: 'refused', problems };
  return {
    state: 'resolved',
    configuration,
    mounts: mounts.all,
    secrets: [...mounts.secrets],
    imagePullSecrets: [...new Set(profiles.flatMap(({ spec }) => spec.imagePullSecrets ?? []))],
    mode,
    intercepts: entries.hosts.length > 0,
    tokenFiles: config.credentials.some(({ output }) => output?.file !== undefined),
    tokenEndpoint: config.tokenEndpoint !== undefined,
    brokerAuthorities: entries.credentials.some(({ via }) => via === 'broker'),
    inUse: profiles.map(inUse).join(', '),
    warnings,
  };
}

function joined(all: readonly ProfileEntries[]): ProfileEntries {
  return {
    credentials: all.flatMap(({ credentials }) => credentials),
    routes: all.flatMap(({ routes }) => routes),
    hosts: all.flatMap(({ hosts }) => hosts),
  };
}

function tooManyTogether(entries: ProfileEntries): readonly Problem[] {
  return (['credentials', 'routes', 'hosts'] as const).flatMap((list) => {
    const count = entries[list].length;
    if (count <= MAX_TOGETHER[list]) return [];
    const expected = `profiles with at most ${MAX_TOGETHER[list]} ${list} together`;
    return [{ key: ANNOTATION.profile, value: String(count), expected }];
  });
}

function inUse({ identity: { kind, name, generation } }: ValidProfile): string {
  return generation === undefined ? `${kind}/${name}` : `${kind}/${name}@${generation}`;
}

function named({ of, ...problem }: OwnedProblem): Problem {
  if (of === undefined || !problem.key.startsWith('spec')) return problem;
  return { ...problem, key: `${called(of.profile.identity)}: ${problem.key}` };
}

function collisions(entries: ProfileEntries): readonly Problem[] {
  return findConflicts(entries).map(({ first, second, field, value }) => ({
    key: `${called(second.profile.identity)}: ${second.key}.${field}`,
    value,
    expected: `another than that of ${called(first.profile.identity)}: ${first.key}`,
  }));
}

/** Every mode serves routes. */
function modeOf(
  profiles: readonly ValidProfile[],
  entries: ProfileEntries,
  problems: Problem[],
): SidecarMode {
  const asking = profiles.filter(({ spec }) => (spec.mode ?? 'reverse') !== 'reverse');
  const [first, ...others] = asking;
  const other = others.find(({ spec }) => spec.mode !== first?.spec.mode);
  if (first !== undefined && other !== undefined) {
    problems.push({
      key: `${called(other.identity)}: spec.mode`,
      value: other.spec.mode as string,
      expected: `${first.spec.mode}, as ${called(first.identity)} has it`,
    });
  }
  return first?.spec.mode ?? (entries.hosts.length > 0 ? 'forward' : 'reverse');
}

/**
 * If hosts are limited, whoever writes CAs in the pod's namespace could impersonate any host. With `hostAliases`, so could whoever
 * sets a certificate's name.
 */
function forbiddenTls(profiles: readonly ValidProfile[], { allowed = {} }: Limits): readonly Problem[] {
  if (!limitsHosts(allowed)) return [];
  return profiles.flatMap(({ identity, spec }) => {
    const refused = identity.kind === 'TokenProfile' ? (['ca', 'serverName'] as const) : (['ca'] as const);
    return Object.entries({ credentials: spec.credentials, routes: spec.routes, hosts: spec.hosts }).flatMap(
      ([list, entries = []]) =>
        entries.flatMap(({ tls, ...entry }, index) =>
          // Tenants cannot write the broker's CAs.
          ('via' in entry && entry.via === 'broker' ? [] : refused)
            .filter((field) => tls?.[field] !== undefined)
            .map((field) => ({
              key: `${called(identity)}: spec.${list}[${index}].tls.${field}`,
              expected: 'nothing, where the operator limits hosts: only public CAs prove who they are',
            })),
        ),
    );
  });
}

/** A static token is the Secret itself. A limit on providers alone would not restrain it. */
function forbiddenStatic(
  { credentials }: ProfileEntries,
  {
    [ANNOTATION.secret]: secret,
    [ANNOTATION.upstream]: upstream,
    [ANNOTATION.hosts]: hosts,
  }: ProfileRequest['overrides'],
  { allowed = {} }: Limits,
): readonly Problem[] {
  if (allowed.authHosts === undefined || allowed.upstreamHosts !== undefined) return [];
  const isOverridden = [secret, upstream, hosts].some((annotation) => annotation !== undefined);
  return credentials
    .filter(({ entry }) => entry.grant === 'static')
    .filter(({ profile }) => isOverridden || profile.identity.kind === 'TokenProfile')
    .map((of) =>
      named({
        key: `${of.key}.grant`,
        value: 'static',
        expected:
          'another, where the operator limits providers and not upstreams: the Secret itself goes there',
        of,
      }),
    );
}

/** If hosts are limited, no token goes to the app, which could send it anywhere. */
function forbiddenOutputs(
  { credentials }: ProfileEntries,
  { [ANNOTATION.secret]: secret }: ProfileRequest['overrides'],
  { allowed = {} }: Limits,
): readonly Problem[] {
  if (!limitsHosts(allowed)) return [];
  return credentials
    .filter(({ entry }) => entry.output !== undefined)
    .filter(({ profile }) => secret !== undefined || profile.identity.kind === 'TokenProfile')
    .map((of) =>
      named({
        key: `${of.key}.output`,
        expected: 'nothing, where the operator limits hosts: the app would have the token itself',
        of,
      }),
    );
}

/** Tenants' hosts are limited; a ClusterTokenProfile is the operator's own. */
function forbiddenHosts(
  { credentials, routes, hosts }: ProfileEntries,
  config: Config,
  { allowed = {}, allowInsecureTokenUrl }: Limits,
): readonly Problem[] {
  const problems: Problem[] = [];
  const judge = (
    of: Owned<unknown>,
    field: string,
    url: string,
    list: readonly string[] | undefined,
  ): void => {
    if (of.profile.identity.kind === 'ClusterTokenProfile' || isAllowedHost(url, list)) return;
    const expected = `a host that the operator allows: ${list?.join(', ') || 'none'}`;
    problems.push(named({ key: `${of.key}.${field}`, value: url, expected, of }));
  };
  /** The egress proxy is a destination, too. */
  const validateProxy = (of: Owned<unknown>, list: readonly string[] | undefined): void => {
    if (of.egressProxy !== undefined) judge(of, 'egressProxy.url', of.egressProxy.url, list);
  };
  for (const of of credentials) validateProxy(of, allowed.authHosts);
  // Its login is a Secret, which must not leave even if only providers are limited.
  for (const of of [...routes, ...hosts]) validateProxy(of, allowed.upstreamHosts ?? allowed.authHosts);
  config.credentials.forEach(({ issuerUrl, tokenUrl }, index) => {
    const of = credentials[index];
    const url = issuerUrl ?? tokenUrl;
    if (of === undefined || url === undefined) return;
    const field = ['issuerUrl', 'tokenUrl', 'authUrl'].find((name) => Object.hasOwn(of.entry, name));
    judge(of, field ?? 'tokenUrl', url, allowed.authHosts);
    const isTenants = of.profile.identity.kind === 'TokenProfile';
    if (isTenants && of.entry.allowInsecureTokenUrl === true && !allowInsecureTokenUrl) {
      const expected = 'nothing, unless the operator allows it: the client secret would travel in clear';
      problems.push(named({ key: `${of.key}.allowInsecureTokenUrl`, value: 'true', expected, of }));
    }
  });
  config.routes.forEach(({ upstream }, index) => {
    const of = routes[index];
    if (of !== undefined) judge(of, 'upstream', urlOf(upstream), allowed.upstreamHosts);
  });
  config.forwardProxy?.allow.forEach(({ host, port, upgradeToTls }, index) => {
    const of = hosts[index];
    const authority = `${host}:${port ?? (upgradeToTls ? 443 : 80)}`;
    if (of !== undefined) {
      // Over TLS and, if permitted, in clear text.
      judge(of, 'host', `https://${host}:${port ?? 443}`, allowed.upstreamHosts);
      if (!upgradeToTls) judge(of, 'host', `http://${authority}`, allowed.upstreamHosts);
    }
  });
  return problems;
}

function clearTextWarnings({ credentials, routes }: ProfileEntries, config: Config): readonly string[] {
  const warn = (of: Owned<unknown> | undefined, field: string, what: string): string[] =>
    of === undefined
      ? []
      : [`${called(of.profile.identity)}: ${of.key}.${field}: http carries the ${what} in clear`];
  return [
    ...config.credentials.flatMap(({ issuerUrl, tokenUrl }, index) => {
      const url = new URL(issuerUrl ?? tokenUrl ?? 'https://none');
      const isClear = url.protocol === 'http:' && !isLoopbackHost(url.hostname);
      return isClear ? warn(credentials[index], 'allowInsecureTokenUrl', 'client secret') : [];
    }),
    ...config.routes.flatMap(({ upstream }, index) => {
      const isClear = upstream.protocol === 'http' && !isLoopbackHost(upstream.host);
      return isClear ? warn(routes[index], 'upstream', 'access token') : [];
    }),
  ];
}

function urlOf({ protocol, authority }: Upstream): string {
  return `${protocol}://${authority}`;
}

/** Characters, keys included. */
const MAX_CHARACTERS = 4 * 1024 * 1024;
const MAX_RESOLUTIONS = 500;

interface KnownResolutions {
  of(
    profiles: readonly ValidProfile[],
    overrides: ProfileRequest['overrides'],
    defaults: ProfileRequest['defaults'],
    resolve: () => ProfileResolution,
  ): ProfileResolution;
}

/** The key holds all that went into it, so no entry is ever out of date. */
export function rememberResolutions(): KnownResolutions {
  const known = new LruMap<string, ProfileResolution>({
    max: MAX_RESOLUTIONS,
    maxWeight: MAX_CHARACTERS,
    weigh: (resolution, key) => key.length + JSON.stringify(resolution).length,
  });
  const numbers = new WeakMap<object, number>();
  let lastNumber = 0;

  function numberOf(object: object): number {
    const found = numbers.get(object);
    if (found !== undefined) return found;
    numbers.set(object, ++lastNumber);
    return lastNumber;
  }

  return {
    of(profiles, overrides, defaults, resolve) {
      const key = JSON.stringify([...profiles.map(numberOf), numberOf(defaults), overrides]);
      const found = known.get(key);
      if (found !== undefined) return found;
      const resolution = resolve();
      known.set(key, resolution);
      return resolution;
    },
  };
}
