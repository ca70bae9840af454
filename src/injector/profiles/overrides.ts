/** Annotations of a pod that override its profiles. They name no credential and no route, so there must be only one. */

import { namedHosts } from '../../config/values.ts';
import type { Problem } from '../../platform/problems.ts';
import { AUDIENCE, AUTH_URL, HOSTS, PROTOCOL, REALM, SCOPE, SECRET, UPSTREAM } from '../pod/annotations.ts';
import type { ProfileOverrides } from '../pod/profiles.ts';
import type { FileRoute, OwnedCredential, ProfileEntries } from './profile-entries.ts';

const OF_CREDENTIAL = { secret: SECRET, authUrl: AUTH_URL, realm: REALM, scope: SCOPE, audience: AUDIENCE };
const OF_ROUTE = { upstream: UPSTREAM, protocol: PROTOCOL };

/** Name of the route that the annotation `upstream` adds if there is none. */
const OWN_ROUTE = 'default';

export function overridden(
  entries: ProfileEntries,
  overrides: ProfileOverrides,
  allowInsecureTokenUrl: boolean,
  problems: Problem[],
): ProfileEntries {
  const isCredentialNamed = given(overrides, OF_CREDENTIAL).length > 0;
  const isRouteNamed = given(overrides, OF_ROUTE).length > 0;
  const isHostNamed = overrides.hosts !== undefined;
  const [credential] = entries.credentials;
  if (credential === undefined) return entries;
  if (credential.via === 'broker') {
    const expected = 'nothing beside a profile that is via the broker, which alone says what is asked for';
    for (const key of given(overrides, OF_CREDENTIAL)) problems.push({ key, expected });
  }
  refuseUnless(entries.credentials.length === 1, given(overrides, OF_CREDENTIAL), 'credential');
  const whole = wholeProvider(credential, overrides);
  if (whole !== undefined) {
    problems.push({ key: REALM, expected: `nothing beside a profile with ${whole}, which names the realm` });
  }
  refuseUnless(
    entries.credentials.length === 1 || entries.routes.length === 1,
    given(overrides, OF_ROUTE),
    'credential',
  );
  refuseUnless(entries.routes.length <= 1, given(overrides, OF_ROUTE), 'route');
  refuseUnless(entries.credentials.length === 1, isHostNamed ? [HOSTS] : [], 'credential');
  return {
    credentials: isCredentialNamed
      ? entries.credentials.map((each) => withCredential(each, overrides, allowInsecureTokenUrl))
      : entries.credentials,
    routes: isRouteNamed ? routesWith(entries, credential, overrides, problems) : entries.routes,
    hosts: isHostNamed
      ? (namedHosts.parse(overrides.hosts ?? '') ?? []).map((host) => ({
          profile: credential.profile,
          key: HOSTS,
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

function given(
  overrides: ProfileOverrides,
  names: Partial<Record<keyof ProfileOverrides, string>>,
): string[] {
  return Object.entries(names).flatMap(([key, annotation]) =>
    overrides[key as keyof ProfileOverrides] === undefined ? [] : [annotation],
  );
}

/** What in the profile leaves the annotation `realm` without effect. */
function wholeProvider(
  { entry: { tokenUrl, issuerUrl } }: OwnedCredential,
  { authUrl, realm }: ProfileOverrides,
): 'tokenUrl' | 'issuerUrl' | undefined {
  if (realm === undefined || authUrl !== undefined) return undefined;
  if (tokenUrl !== undefined) return 'tokenUrl';
  return issuerUrl === undefined ? undefined : 'issuerUrl';
}

function withCredential(
  owned: OwnedCredential,
  { secret, authUrl, realm, scope, audience }: ProfileOverrides,
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
    },
    secret: secret === undefined ? owned.secret : { ...owned.secret, name: secret },
  };
}

function routesWith(
  { routes }: ProfileEntries,
  credential: OwnedCredential,
  { upstream, protocol }: ProfileOverrides,
  problems: Problem[],
): ProfileEntries['routes'] {
  const own = {
    ...(upstream === undefined ? {} : { upstream }),
    ...(protocol === undefined ? {} : { protocol }),
  };
  if (routes.length > 0) return routes.map((route) => ({ ...route, entry: { ...route.entry, ...own } }));
  if (upstream === undefined) {
    problems.push({
      key: PROTOCOL,
      expected: `nothing beside profiles without a route, unless ${UPSTREAM} adds one`,
    });
    return routes;
  }
  const entry: FileRoute = { name: OWN_ROUTE, credential: credential.entry.name, ...own };
  return [{ profile: credential.profile, key: UPSTREAM, entry }];
}
