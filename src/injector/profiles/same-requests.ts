/** Entries that would take the same requests, or have the same name: a mistake in one profile, a collision between two. */

import type { FileDestination, FileRoute, Owned, ProfileEntries } from './profile-entries.ts';

/** Two entries that exclude each other. */
interface Sameness {
  readonly first: Owned<unknown>;
  readonly second: Owned<unknown>;
  /** The field of the second that is the same, as a key of its entry, and its value. */
  readonly field: string;
  readonly value: string;
}

export function samenesses({ credentials, routes, hosts }: ProfileEntries): readonly Sameness[] {
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

/** An entry without a port takes every port of its host that another entry may name. */
function overlap(a: FileDestination, b: FileDestination): boolean {
  if (a.host.toLowerCase() !== b.host.toLowerCase()) return false;
  return a.port === b.port || a.port === undefined || b.port === undefined;
}

function pairs<Entry>(
  list: readonly Owned<Entry>[],
  field: string,
  shown: (entry: Entry) => string,
  areSame: (a: Entry, b: Entry) => boolean,
): Sameness[] {
  return list.flatMap((second, index) => {
    const first = list.slice(0, index).find(({ entry }) => areSame(entry, second.entry));
    return first === undefined ? [] : [{ first, second, field, value: shown(second.entry) }];
  });
}
