/** Which metric series belong to one configuration but to none of some others. */

import type { Config, TlsConfig } from '../config/config.ts';
import type { Labels } from '../platform/prometheus.ts';
import { NO_ROUTE } from '../proxy/metrics.ts';

/** A route or a credential, or one of its certificate files, as one text. */
type Subject = string;

/** The subjects that `before` has and none of `users` has. */
export function staleSubjects(before: Config, users: readonly Config[]): ReadonlySet<Subject> {
  const kept = new Set(users.flatMap(subjectsOf));
  return new Set(subjectsOf(before).filter((subject) => !kept.has(subject)));
}

/** Whether a series with these labels belongs to one of the subjects. */
export function isAbout(gone: ReadonlySet<Subject>, labels: Labels): boolean {
  const { route, credential, file } = labels;
  const user =
    route !== undefined ? routeOf(route) : credential !== undefined ? credentialOf(credential) : undefined;
  return user !== undefined && (gone.has(user) || (file !== undefined && gone.has(fileOf(user, file))));
}

export function routeOf(name: string): Subject {
  return JSON.stringify(['route', name]);
}

export function credentialOf(name: string): Subject {
  return JSON.stringify(['credential', name]);
}

function fileOf(user: Subject, file: string): Subject {
  return `${user} ${file}`;
}

function subjectsOf(config: Config): Subject[] {
  return [
    ...routeNamesOf(config).map(routeOf),
    ...config.routes.flatMap(({ name, tls }) => filesOf(routeOf(name), tls)),
    ...listsOf(config).flatMap(([prefix, entries]) =>
      (entries ?? []).flatMap(({ host, tls }) => filesOf(routeOf(`${prefix}:${host}`), tls)),
    ),
    ...config.credentials.flatMap(({ name, tls, clientAuth }) => [
      credentialOf(name),
      ...filesOf(credentialOf(name), tls),
      // From the mounted Secret.
      ...(clientAuth.method === 'tls_client_auth' ? [fileOf(credentialOf(name), 'tls.crt')] : []),
    ]),
  ];
}

function filesOf(user: Subject, tls: TlsConfig): Subject[] {
  return (['caFile', 'certFile'] as const)
    .filter((file) => tls[file] !== undefined)
    .map((file) => fileOf(user, file));
}

/** Every route name that requests may be counted under. */
export function routeNamesOf(config: Config): string[] {
  return [
    NO_ROUTE,
    ...config.routes.map(({ name }) => name),
    ...listsOf(config).flatMap(([prefix, entries]) => namesBy(prefix, entries)),
  ];
}

type Entries = readonly { readonly host: string; readonly tls: TlsConfig }[] | undefined;

/** The lists of hosts, each with the prefix of its route names. */
function listsOf({ forwardProxy, capture, redirect }: Config): readonly (readonly [string, Entries])[] {
  return [
    ['forward', forwardProxy?.allow],
    ['capture', capture?.hosts],
    ['redirect', redirect?.hosts],
  ];
}

/** Each entry's own route name, and one for hosts without an entry. */
function namesBy(prefix: string, entries: Entries): string[] {
  return entries === undefined
    ? []
    : ['other', ...entries.map(({ host }) => host)].map((host) => `${prefix}:${host}`);
}
