/** Turns a profile into entries of the configuration file, then adds the paths where its Secrets and CAs are mounted. */

import type { InferInput } from 'valibot';
import type { credential } from '../../config/credential-schema.ts';
import type { allowedDestination, fileSchema, route } from '../../config/file-schema.ts';
import { TOKENS_DIRECTORY } from '../pod/names.ts';
import type { ValidProfile } from './profile.ts';
import { type AuthoritiesReference, credentialDirectory, type ProfileMounts } from './profile-mounts.ts';
import type { CredentialSpec, HostSpec, RouteSpec } from './profile-schema.ts';

export type FileCredential = InferInput<typeof credential>;
export type FileRoute = InferInput<typeof route>;
export type FileDestination = InferInput<typeof allowedDestination>;
export type File = InferInput<typeof fileSchema>;

/** An entry with its profile, and its place there: `spec.routes[2]`. */
export interface Owned<Entry> {
  readonly profile: ValidProfile;
  readonly key: string;
  readonly entry: Entry;
  /** The mounted parts of its TLS; undefined if the entry has none. */
  readonly tls?: MountedTls | undefined;
  /** Its egress proxy, whose Secret is mounted. */
  readonly egressProxy?: RouteSpec['egressProxy'];
}

/** A ConfigMap or Secret with CAs, and a Secret with a client certificate. */
interface MountedTls {
  readonly serverName?: string | undefined;
  readonly ca?: AuthoritiesReference | undefined;
  readonly clientCertificate?: string | undefined;
}

export interface OwnedCredential extends Owned<FileCredential> {
  readonly via: 'sidecar' | 'broker';
  /** `PROFILE/CREDENTIAL`, the name of the credential at the broker; without a name of its own it has the profile's. */
  readonly brokerPath: string;
  readonly secret: CredentialSpec['secret'];
  readonly serviceAccountToken: CredentialSpec['serviceAccountToken'];
}

export interface ProfileEntries {
  readonly credentials: readonly OwnedCredential[];
  readonly routes: readonly Owned<FileRoute>[];
  readonly hosts: readonly Owned<FileDestination>[];
}

export function profileEntries(profile: ValidProfile): ProfileEntries {
  const { spec, identity } = profile;
  const named = (own: string | undefined): string =>
    own === undefined ? identity.name : `${identity.name}-${own}`;

  function forwarding({ credential: own, tls: _, egressProxy: __, ...settings }: RouteSpec | HostSpec) {
    return { ...settings, credential: named(own ?? spec.credentials[0]?.name) };
  }

  return {
    credentials: spec.credentials.map(
      (
        { name, via, secret, serviceAccountToken, tls, egressProxy, output, ...settings },
        index,
      ): OwnedCredential => ({
        profile,
        key: `spec.credentials[${index}]`,
        entry: {
          name: named(name),
          ...settings,
          // A mounted token without a Secret also gets its own directory.
          dir: credentialDirectory(named(name)),
          ...(output === undefined ? {} : { output: placed(output) }),
        },
        tls,
        egressProxy,
        via: via ?? 'sidecar',
        brokerPath: `${identity.name}/${name ?? identity.name}`,
        secret,
        serviceAccountToken,
      }),
    ),
    routes: (spec.routes ?? []).map((own, index) => ({
      profile,
      key: `spec.routes[${index}]`,
      entry: { ...(forwarding(own) as FileRoute), name: named(own.name) },
      tls: own.tls,
      egressProxy: own.egressProxy,
    })),
    hosts: (spec.hosts ?? []).map((own, index) => ({
      profile,
      key: `spec.hosts[${index}]`,
      entry: { ...(forwarding(own) as FileDestination), host: own.host },
      tls: own.tls,
      egressProxy: own.egressProxy,
    })),
  };
}

function placed({ file, ...output }: NonNullable<CredentialSpec['output']>): FileCredential['output'] {
  return file === undefined ? output : { ...output, file: `${TOKENS_DIRECTORY}/${file}` };
}

/** Applied after the pod's annotations: what the pod does not use is not mounted, and need not exist. */
export function withMounts(
  { credentials, routes, hosts }: ProfileEntries,
  mounts: ProfileMounts,
): ProfileEntries {
  return {
    credentials: credentials.map((owned) => withProxy(withTls(owned, mounts), mounts)),
    routes: routes.map((owned) => withProxy(withTls(owned, mounts), mounts)),
    hosts: hosts.map((owned) => withProxy(withTls(owned, mounts), mounts)),
  };
}

function withTls<Of extends Owned<object>>(owned: Of, mounts: ProfileMounts): Of {
  const { tls, entry } = owned;
  if (tls === undefined) return owned;
  const { serverName, ca, clientCertificate } = tls;
  const placed = {
    ...(serverName === undefined ? {} : { serverName }),
    ...(ca === undefined ? {} : { caFile: mounts.authorities(ca) }),
    ...(clientCertificate === undefined ? {} : mounts.certificate(clientCertificate)),
  };
  return { ...owned, entry: { ...entry, tls: placed } };
}

function withProxy<Of extends Owned<object>>(owned: Of, mounts: ProfileMounts): Of {
  const { egressProxy, entry } = owned;
  if (egressProxy === undefined) return owned;
  const { secret, ...settings } = egressProxy;
  const placed = {
    ...settings,
    ...(secret === undefined ? {} : { credentialsDir: mounts.proxyCredentials(secret) }),
  };
  return { ...owned, entry: { ...entry, egressProxy: placed } };
}

/** Routes and hosts with the more specific ones first, whatever the order of the profiles. */
export function toFile({ credentials, routes, hosts }: ProfileEntries): File {
  return {
    credentials: credentials.map(({ entry }) => entry),
    ...(routes.length === 0 ? {} : { routes: routes.map(({ entry }) => entry) }),
    ...(hosts.length === 0
      ? {}
      : {
          forwardProxy: {
            allow: hosts.map(({ entry }) => entry),
            connect: 'intercept',
            otherHosts: 'pass',
          },
        }),
  };
}

export function mostSpecificFirst(entries: ProfileEntries): ProfileEntries {
  return {
    ...entries,
    routes: [...entries.routes].sort((a, b) => byRoute(a.entry, b.entry)),
    hosts: [...entries.hosts].sort((a, b) => byHost(a.entry, b.entry)),
  };
}

function byRoute({ match: a }: FileRoute, { match: b }: FileRoute): number {
  const hosts = Number(b?.host !== undefined) - Number(a?.host !== undefined);
  return hosts || (b?.pathPrefix ?? '/').length - (a?.pathPrefix ?? '/').length;
}

function byHost(a: FileDestination, b: FileDestination): number {
  const wild = Number(a.host.startsWith('*')) - Number(b.host.startsWith('*'));
  return wild || b.host.length - a.host.length || Number(b.port !== undefined) - Number(a.port !== undefined);
}
