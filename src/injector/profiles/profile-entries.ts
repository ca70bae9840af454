import type { InferInput } from 'valibot';
import type { CredentialConfig } from '../../config/config.ts';
import type { credential } from '../../config/credential-schema.ts';
import type { allowedDestination, fileSchema, route } from '../../config/file-schema.ts';
import type { Problem } from '../../platform/problems.ts';
import { ANNOTATION } from '../pod/annotations.ts';
import { CA, CREDENTIALS, TOKENS } from '../pod/pod.ts';
import { mountOf, type SidecarMount } from '../pod/sidecar-mounts.ts';
import type { ValidProfile } from './profile.ts';
import type { ProfileSpec } from './profile-schema.ts';

const AUTHORITIES_PATH = '/etc/token-sidecar-authorities';

type CredentialSpec = ProfileSpec['credentials'][number];
type RouteSpec = NonNullable<ProfileSpec['routes']>[number];
type HostSpec = NonNullable<ProfileSpec['hosts']>[number];

type FileCredential = InferInput<typeof credential>;
export type FileRoute = InferInput<typeof route>;
export type FileDestination = InferInput<typeof allowedDestination>;
export type File = InferInput<typeof fileSchema>;

/** With its place: `spec.routes[2]`. */
export interface Owned<Entry> {
  readonly profile: ValidProfile;
  readonly key: string;
  readonly entry: Entry;
  readonly tls?: MountedTls | undefined;
  readonly egressProxy?: RouteSpec['egressProxy'];
}

interface MountedTls {
  readonly serverName?: string | undefined;
  readonly ca?: AuthoritiesReference | undefined;
  readonly clientCertificate?: string | undefined;
}

export interface OwnedCredential extends Owned<FileCredential> {
  readonly via: 'sidecar' | 'broker';
  /** `PROFILE/CREDENTIAL`; a nameless credential has the profile's name. */
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
  return file === undefined ? output : { ...output, file: `${TOKENS.directory}/${file}` };
}

/** After the pod's annotations: what the pod does not use need not exist. */
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

/** More specific routes and hosts come first. */
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

// Each Secret and each set of CAs is its own volume.

interface AuthoritiesReference {
  readonly configMap?: { readonly name: string; readonly key?: string | undefined } | undefined;
  readonly secret?: { readonly name: string; readonly key?: string | undefined } | undefined;
}

export interface ProfileMounts {
  /** Mounted once per key of an object. */
  authorities(from: AuthoritiesReference): string;
  brokerAuthorities(): string;
  certificate(secret: string): { readonly certFile: string; readonly keyFile: string };
  proxyCredentials(secret: string): string;
  /** @param sources of a projected volume. */
  credential(directory: string, sources: readonly object[]): void;
  needs(secret: string): void;
  readonly all: readonly SidecarMount[];
  readonly secrets: ReadonlySet<string>;
}

function credentialDirectory(name: string): string {
  return `${CREDENTIALS.directory}/${name}`;
}

export function planMounts(): ProfileMounts {
  const all: SidecarMount[] = [];
  const secrets = new Set<string>();
  const placed = new Map<string, string>();

  /** Names of credentials may be too long for volumes. */
  function nextVolume(base: string): string {
    const count = all.filter(({ name }) => name.startsWith(`${base}-`)).length;
    return `${base}-${count + 1}`;
  }

  function once(what: string, place: () => string): string {
    const path = placed.get(what) ?? place();
    placed.set(what, path);
    return path;
  }

  function keysOf(secret: string, use: 'tls' | 'proxy', keys: readonly string[]): string {
    secrets.add(secret);
    return once(`${use} ${secret}`, () => {
      const volume = nextVolume(CREDENTIALS.volume);
      const mountPath = `${CREDENTIALS.directory}-${use}/${volume.slice(CREDENTIALS.volume.length + 1)}`;
      const items = keys.map((key) => ({ key, path: key }));
      all.push(
        mountOf.credentials(volume, mountPath, [{ secret: { name: secret, optional: false, items } }]),
      );
      return mountPath;
    });
  }

  function placeAuthorities(what: string, source: object): string {
    return once(what, () => {
      const volume = nextVolume(CA.volume);
      const mountPath = `${AUTHORITIES_PATH}/${volume.slice(CA.volume.length + 1)}`;
      all.push(mountOf.credentials(volume, mountPath, [source]));
      return `${mountPath}/${CA.key}`;
    });
  }

  return {
    all,
    secrets,
    authorities({ configMap, secret }) {
      const { name, key = CA.key } = configMap ?? secret ?? { name: '' };
      if (secret !== undefined) secrets.add(name);
      const source = { name, optional: false, items: [{ key, path: CA.key }] };
      return placeAuthorities(
        JSON.stringify([configMap === undefined, name, key]),
        configMap === undefined ? { secret: source } : { configMap: source },
      );
    },
    brokerAuthorities() {
      const fieldRef = { fieldPath: `metadata.annotations['${ANNOTATION.brokerCa}']` };
      return placeAuthorities('broker', { downwardAPI: { items: [{ path: CA.key, fieldRef }] } });
    },
    certificate(secret) {
      const directory = keysOf(secret, 'tls', ['tls.crt', 'tls.key']);
      return { certFile: `${directory}/tls.crt`, keyFile: `${directory}/tls.key` };
    },
    proxyCredentials: (secret) => keysOf(secret, 'proxy', ['username', 'password']),
    credential(directory, sources) {
      all.push(mountOf.credentials(nextVolume(CREDENTIALS.volume), directory, sources));
    },
    needs: (secret) => void secrets.add(secret),
  };
}

export type FilesOf = (config: CredentialConfig) => readonly string[];

/** The name that `kubernetes_jwt` expects. */
const TOKEN_FILE = 'token';

/** @param config the resolved credential. */
export function credentialSources(
  { key, secret, serviceAccountToken }: OwnedCredential,
  config: CredentialConfig,
  filesOf: FilesOf,
  problems: Problem[],
): readonly object[] {
  const needed = filesOf(config);
  const all = needed.join(', ') || 'none';
  const token = serviceAccountToken && {
    ...serviceAccountToken,
    file: serviceAccountToken.file ?? TOKEN_FILE,
  };
  if (token !== undefined && !needed.includes(token.file)) {
    const expected = `a file that is read, and of these there are: ${all}`;
    problems.push({ key: `${key}.serviceAccountToken.file`, value: token.file, expected });
  }
  const { keys = {} } = secret ?? {};
  for (const file of Object.keys(keys)) {
    if (needed.includes(file) && file !== token?.file) continue;
    const expected = `a file that is read of the Secret, and of these there are: ${all}`;
    problems.push({ key: `${key}.secret.keys.${file}`, expected });
  }
  const files = needed.filter((file) => file !== token?.file);
  if (secret === undefined && files.length > 0) {
    problems.push({ key: `${key}.secret`, expected: `the Secret with ${files.join(', ')}` });
  }
  if (secret !== undefined && files.length === 0) {
    const expected = 'nothing, as no file of it is read';
    problems.push({ key: `${key}.secret`, value: secret.name, expected });
  }
  return [
    ...(secret === undefined
      ? []
      : [
          {
            secret: {
              name: secret.name,
              optional: false,
              items: files.map((file) => ({ key: keyOf(keys, file), path: file })),
            },
          },
        ]),
    ...(token === undefined
      ? []
      : [
          {
            serviceAccountToken: {
              audience: token.audience,
              expirationSeconds: token.expirationSeconds ?? 3600,
              path: token.file,
            },
          },
        ]),
  ];
}

function keyOf(keys: Readonly<Record<string, string>>, file: string): string {
  return Object.hasOwn(keys, file) ? (keys[file] as string) : file;
}
