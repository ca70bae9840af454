/** Entries of profiles, judged by the configuration file's rules in the profiles' own terms. */

import type { Config } from '../../config/config.ts';
import { readShape } from '../../config/file.ts';
import { fileSchema } from '../../config/file-schema.ts';
import { resolveConfig } from '../../config/resolve-config.ts';
import { formats } from '../../config/values.ts';
import type { Problem } from '../../platform/problems.ts';
import { ANNOTATION, overriding } from '../pod/annotations.ts';
import type { ProfileOverrides } from '../pod/cluster.ts';
import {
  type File,
  type FileDestination,
  type FileRoute,
  type Owned,
  type OwnedCredential,
  type ProfileEntries,
  toFile,
} from './profile-entries.ts';

interface ResolvedEntries {
  readonly file: File;
  /** Undefined if there is a problem. */
  readonly config: Config | undefined;
  /** To judge the rest by, without entries that are wrong as a whole. */
  readonly understood: Config | undefined;
}

/** `of` is undefined if it concerns all entries. */
export interface OwnedProblem extends Problem {
  readonly of: Owned<unknown> | undefined;
}

export function resolveEntries(entries: ProfileEntries, problems: OwnedProblem[]): ResolvedEntries {
  const file = toFile(entries);
  const found: Problem[] = [];
  const read = readShape(fileSchema, structuredClone(file), found);
  const config = read && resolveConfig({ config: read, understood: true }, {}, found);
  const known = new Set<string>();
  for (const problem of found) {
    // A setting that was not understood would be reported again as missing.
    if (known.has(problem.key)) continue;
    known.add(problem.key);
    problems.push(inTermsOfProfile(problem, entries));
  }
  return { file, config: found.length === 0 ? config : undefined, understood: config };
}

function inTermsOfProfile(problem: Problem, { credentials, routes, hosts }: ProfileEntries): OwnedProblem {
  const lists: Readonly<Record<string, readonly Owned<unknown>[]>> = {
    credentials,
    routes,
    'forwardProxy.allow': hosts,
  };
  const [, list = '', index, rest] =
    /^(credentials|routes|forwardProxy\.allow)\[(\d+)\](.*)$/.exec(problem.key) ?? [];
  const of = lists[list]?.[Number(index)];
  if (of === undefined) {
    return { ...problem, key: problem.key.startsWith('forwardProxy') ? 'spec.hosts' : 'spec', of };
  }
  const { instead } = problem;
  const entry = `${list}[${index}]`;
  const inProfile = instead?.map((name) =>
    name.startsWith(`${entry}.`) ? `${of.key}${name.slice(entry.length)}` : name,
  );
  return {
    ...problem,
    key: `${of.key}${rest}`,
    ...(inProfile === undefined ? {} : { instead: inProfile }),
    of,
  };
}

// Entries that exclude each other: a mistake in one profile, or a collision between two.

interface Conflict {
  readonly first: Owned<unknown>;
  readonly second: Owned<unknown>;
  readonly field: string;
  readonly value: string;
}

export function findConflicts({ credentials, routes, hosts }: ProfileEntries): readonly Conflict[] {
  return [
    ...pairs(credentials, 'name', ({ name }) => name, isSame),
    ...pairs(routes, 'name', ({ name }) => name, isSame),
    ...pairs(routes, 'match', requestsOf, (a, b) => requestsOf(a) === requestsOf(b)),
    ...pairs(hosts, 'host', authorityOf, overlap),
  ];
}

function isSame(a: { readonly name: string }, b: { readonly name: string }): boolean {
  return a.name === b.name;
}

function requestsOf({ match }: FileRoute): string {
  return `${match?.host?.toLowerCase() ?? ''}${(match?.pathPrefix ?? '/').replace(/\/$/, '')}/`;
}

function authorityOf({ host, port }: FileDestination): string {
  return port === undefined ? host : `${host}:${port}`;
}

/** Without a port, an entry takes every port of its host. */
function overlap(a: FileDestination, b: FileDestination): boolean {
  if (a.host.toLowerCase() !== b.host.toLowerCase()) return false;
  return a.port === b.port || a.port === undefined || b.port === undefined;
}

function pairs<Entry>(
  list: readonly Owned<Entry>[],
  field: string,
  shown: (entry: Entry) => string,
  areSame: (a: Entry, b: Entry) => boolean,
): Conflict[] {
  return list.flatMap((second, index) => {
    const first = list.slice(0, index).find(({ entry }) => areSame(entry, second.entry));
    return first === undefined ? [] : [{ first, second, field, value: shown(second.entry) }];
  });
}

// Annotations override only one credential or route, since they name none.

/** For the annotation `upstream` without a route. */
const OWN_ROUTE = 'default';

export function overridden(
  entries: ProfileEntries,
  overrides: ProfileOverrides,
  allowInsecureTokenUrl: boolean,
  problems: Problem[],
): ProfileEntries {
  const given = (part: Parameters<typeof overriding>[0]) =>
    overriding(part).filter((name) => overrides[name] !== undefined);
  const [ofCredential, ofRoute, ofHosts] = [given('credential'), given('route'), given('hosts')];
  const [credential] = entries.credentials;
  if (credential === undefined) return entries;
  if (credential.via === 'broker') {
    const expected = 'nothing beside a profile that is via the broker, which alone says what is asked for';
    for (const key of ofCredential) problems.push({ key, expected });
  }
  refuseUnless(entries.credentials.length === 1, ofCredential, 'credential');
  const whole = wholeProvider(credential, overrides);
  if (whole !== undefined) {
    problems.push({
      key: ANNOTATION.realm,
      expected: `nothing beside a profile with ${whole}, which names the realm`,
    });
  }
  refuseUnless(entries.credentials.length === 1 || entries.routes.length === 1, ofRoute, 'credential');
  refuseUnless(entries.routes.length <= 1, ofRoute, 'route');
  refuseUnless(entries.credentials.length === 1, ofHosts, 'credential');
  return {
    credentials:
      ofCredential.length > 0
        ? entries.credentials.map((each) => withCredential(each, overrides, allowInsecureTokenUrl))
        : entries.credentials,
    routes: ofRoute.length > 0 ? routesWith(entries, credential, overrides, problems) : entries.routes,
    hosts:
      ofHosts.length > 0
        ? (formats.namedHosts.parse(overrides[ANNOTATION.hosts] ?? '') ?? []).map((host) => ({
            profile: credential.profile,
            key: ANNOTATION.hosts,
            entry: { ...host, credential: credential.entry.name },
          }))
        : entries.hosts,
  };

  function refuseUnless(isOne: boolean, annotations: readonly string[], what: string): void {
    if (isOne) return;
    const expected = `nothing beside profiles with several ${what}s, of which it does not say which it means`;
    for (const key of annotations) problems.push({ key, expected });
  }
}

function wholeProvider(
  { entry: { tokenUrl, issuerUrl } }: OwnedCredential,
  { [ANNOTATION.authUrl]: authUrl, [ANNOTATION.realm]: realm }: ProfileOverrides,
): 'tokenUrl' | 'issuerUrl' | undefined {
  if (realm === undefined || authUrl !== undefined) return undefined;
  if (tokenUrl !== undefined) return 'tokenUrl';
  return issuerUrl === undefined ? undefined : 'issuerUrl';
}

function withCredential(
  owned: OwnedCredential,
  {
    [ANNOTATION.secret]: secret,
    [ANNOTATION.authUrl]: authUrl,
    [ANNOTATION.realm]: realm,
    [ANNOTATION.scope]: scope,
    [ANNOTATION.audience]: audience,
    [ANNOTATION.proofOfPossession]: proofOfPossession,
  }: ProfileOverrides,
  allowInsecureTokenUrl: boolean,
): OwnedCredential {
  const { tokenUrl, issuerUrl, ...entry } = owned.entry;
  const provider =
    authUrl === undefined
      ? {
          ...(tokenUrl === undefined ? {} : { tokenUrl }),
          ...(issuerUrl === undefined ? {} : { issuerUrl }),
        }
      : { authUrl, allowInsecureTokenUrl };
  return {
    ...owned,
    entry: {
      ...entry,
      ...provider,
      ...(realm === undefined ? {} : { realm }),
      ...(scope === undefined ? {} : { scope }),
      ...(audience === undefined ? {} : { audience }),
      ...(proofOfPossession === undefined ? {} : { proofOfPossession }),
    },
    secret: secret === undefined ? owned.secret : { ...owned.secret, name: secret },
  };
}

function routesWith(
  { routes }: ProfileEntries,
  credential: OwnedCredential,
  { [ANNOTATION.upstream]: upstream, [ANNOTATION.protocol]: protocol }: ProfileOverrides,
  problems: Problem[],
): ProfileEntries['routes'] {
  const own = {
    ...(upstream === undefined ? {} : { upstream }),
    ...(protocol === undefined ? {} : { protocol }),
  };
  if (routes.length > 0) return routes.map((route) => ({ ...route, entry: { ...route.entry, ...own } }));
  if (upstream === undefined) {
    problems.push({
      key: ANNOTATION.protocol,
      expected: `nothing beside profiles without a route, unless ${ANNOTATION.upstream} adds one`,
    });
    return routes;
  }
  const entry: FileRoute = { name: OWN_ROUTE, credential: credential.entry.name, ...own };
  return [{ profile: credential.profile, key: ANNOTATION.upstream, entry }];
}
