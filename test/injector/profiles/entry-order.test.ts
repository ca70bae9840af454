import { expect, it } from 'vitest';
import {
  type FileDestination,
  type FileRoute,
  mostSpecificFirst,
  type Owned,
  type ProfileEntries,
  type ProfileMounts,
  withMounts,
} from '../../../src/injector/profiles/profile-entries.ts';

const entries = (owned: Partial<ProfileEntries>): ProfileEntries => ({
  credentials: [],
  routes: [],
  hosts: [],
  ...owned,
});

/** In the order in which a pod gets them. */
function hostsInOrder(...hosts: FileDestination[]) {
  const owned = hosts.map((entry) => ({ entry }) as Owned<FileDestination>);
  return mostSpecificFirst(entries({ hosts: owned })).hosts.map(({ entry: { host, port } }) =>
    port === undefined ? host : `${host}:${port}`,
  );
}

it('hosts with a name come before those with a wildcard, longer before shorter, with a port before without', () => {
  expect(
    hostsInOrder(
      { host: '*.a.very.long.example.com' },
      { host: 'b.com' },
      { host: '*.b.com' },
      { host: 'api.example.com' },
      { host: 'b.com', port: 8443 },
      { host: '*.b.com', port: 8443 },
    ),
  ).toEqual([
    'api.example.com',
    'b.com:8443',
    'b.com',
    '*.a.very.long.example.com',
    '*.b.com:8443',
    '*.b.com',
  ]);
});

it('equal hosts keep the order of the profiles', () => {
  expect(hostsInOrder({ host: 'a.com', port: 1 }, { host: 'b.com', port: 2 })).toEqual([
    'a.com:1',
    'b.com:2',
  ]);
  expect(hostsInOrder({ host: 'b.com' }, { host: 'a.com' })).toEqual(['b.com', 'a.com']);
});

it('routes with a host come before those without, and longer paths before shorter', () => {
  const matches = [
    undefined,
    { pathPrefix: '/a/b' },
    { host: 'x.test' },
    { pathPrefix: '/a' },
    { host: 'x.test', pathPrefix: '/a' },
  ];
  const owned = matches.map((match) => ({ entry: { match } }) as unknown as Owned<FileRoute>);
  const sorted = mostSpecificFirst(entries({ routes: owned })).routes.map(({ entry }) => entry.match);
  expect(sorted).toEqual([
    { host: 'x.test', pathPrefix: '/a' },
    { host: 'x.test' },
    { pathPrefix: '/a/b' },
    { pathPrefix: '/a' },
    undefined,
  ]);
});

it('an entry has the TLS settings of its own profile only', () => {
  const mounts = {
    authorities: () => '/ca',
    certificate: () => ({ certFile: '/crt', keyFile: '/key' }),
  } as unknown as ProfileMounts;
  const tlsOf = (tls: Owned<FileRoute>['tls']) => {
    const owned = { entry: { name: 'a' }, tls } as unknown as Owned<FileRoute>;
    return withMounts(entries({ routes: [owned] }), mounts).routes[0]?.entry;
  };
  expect(tlsOf({ serverName: 'up.test' })).toStrictEqual({ name: 'a', tls: { serverName: 'up.test' } });
  expect(tlsOf({ ca: {} as never })).toStrictEqual({ name: 'a', tls: { caFile: '/ca' } });
  expect(tlsOf({ clientCertificate: 'x' })).toStrictEqual({
    name: 'a',
    tls: { certFile: '/crt', keyFile: '/key' },
  });
  expect(tlsOf(undefined)).toStrictEqual({ name: 'a' });
});
