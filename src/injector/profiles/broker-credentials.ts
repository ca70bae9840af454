/** What the broker holds: the credentials of a ClusterTokenProfile that are `via: broker`. */

import type { CredentialConfig } from '../../config/config.ts';
import type { Problem } from '../../platform/problems.ts';
import type { BrokerOfPods } from '../pod/cluster.ts';
import type { SidecarMount } from '../pod/sidecar-mounts.ts';
import { called, type ValidProfile } from './profile.ts';
import {
  credentialSources,
  type FilesOf,
  type OwnedCredential,
  type ProfileMounts,
  planMounts,
  profileEntries,
  withMounts,
} from './profile-entries.ts';
import { resolveEntries } from './resolve-entries.ts';

interface CredentialViaBroker {
  /** Its name in the profile, or the profile's own. */
  readonly name: string;
  /** Its paths are below the root. */
  readonly config: CredentialConfig;
  /** Projected volumes, below the root. */
  readonly mounts: readonly SidecarMount[];
}

/** @param root for the credential's paths. */
export function credentialsViaBroker(
  profile: ValidProfile,
  filesOf: FilesOf,
  root: (name: string) => string,
): readonly CredentialViaBroker[] {
  const { credentials } = profileEntries(profile);
  return credentials.flatMap((owned, index) => {
    if (owned.via !== 'broker') return [];
    const name = profile.spec.credentials[index]?.name ?? profile.identity.name;
    const resolved = resolveAlone(owned, filesOf, root(name));
    return resolved === undefined ? [] : [{ name, ...resolved }];
  });
}

/** Undefined if it has a problem, which the profile's judge has reported. */
function resolveAlone(
  owned: OwnedCredential,
  filesOf: FilesOf,
  root: string,
): Omit<CredentialViaBroker, 'name'> | undefined {
  const mounts = planMounts();
  const alone = withMounts({ credentials: [owned], routes: [], hosts: [] }, mounts).credentials.map(
    (one) => ({
      ...one,
      // The file's rules require a use for every token.
      entry: { ...below(root, one.entry), output: { endpoint: true } },
    }),
  );
  const { config } = resolveEntries({ credentials: alone, routes: [], hosts: [] }, []);
  const [resolved] = config?.credentials ?? [];
  if (resolved === undefined) return undefined;
  const problems: Problem[] = [];
  const sources = credentialSources(owned, resolved, filesOf, problems);
  if (problems.length > 0) return undefined;
  const placed = mounts.all.map((mount) => ({ ...mount, mountPath: `${root}${mount.mountPath}` }));
  mounts.credential(resolved.directory, sources);
  const own = mounts.all.slice(placed.length);
  const { output: _, required: __, ...settings } = resolved;
  return { config: settings, mounts: [...placed, ...own] };
}

function below(root: string, entry: OwnedCredential['entry']): OwnedCredential['entry'] {
  const { dir, tls, egressProxy } = entry;
  const proxy = egressProxy?.credentialsDir;
  return {
    ...entry,
    ...(dir === undefined ? {} : { dir: `${root}${dir}` }),
    ...(tls?.caFile === undefined ? {} : { tls: { ...tls, caFile: `${root}${tls.caFile}` } }),
    ...(egressProxy === undefined || proxy === undefined
      ? {}
      : { egressProxy: { ...egressProxy, credentialsDir: `${root}${proxy}` } }),
  };
}

// The pod's part of such a credential: it authenticates with its service account token.

/** The kubelet replaces tokens when a fifth of this is left. */
const EXPIRATION_SECONDS = 3600;

export const BROKER_RECOVERY_MS = 5000;

/** A missing broker is added to `problems`. */
export function throughBroker(
  owned: OwnedCredential,
  broker: BrokerOfPods | undefined,
  mounts: ProfileMounts,
  problems: Problem[],
): OwnedCredential {
  if (owned.via !== 'broker') return owned;
  const { profile, key, entry } = owned;
  if (broker === undefined) {
    const expected = 'sidecar, as no broker is configured here (--broker-url)';
    problems.push({ key: `${called(profile.identity)}: ${key}.via`, value: 'broker', expected });
    return owned;
  }
  const caFile = authoritiesPath(broker, mounts);
  return {
    profile,
    key,
    via: 'broker',
    brokerPath: owned.brokerPath,
    secret: undefined,
    serviceAccountToken: { audience: broker.audience, expirationSeconds: EXPIRATION_SECONDS },
    entry: {
      name: entry.name,
      dir: entry.dir,
      tokenUrl: `${broker.url}/token/${owned.brokerPath}`,
      clientAuth: 'kubernetes_jwt',
      ...(caFile === undefined ? {} : { tls: { caFile } }),
      ...sidecarsOwn(entry),
    },
  };
}

function authoritiesPath({ authorities }: BrokerOfPods, mounts: ProfileMounts): string | undefined {
  switch (authorities.from) {
    case 'public':
      return undefined;
    case 'config_map':
      return mounts.authorities({ configMap: { name: authorities.name } });
    case 'file':
      return mounts.brokerAuthorities();
  }
}

function sidecarsOwn({
  required,
  output,
  timeouts,
}: OwnedCredential['entry']): Partial<OwnedCredential['entry']> {
  return {
    ...(required === undefined ? {} : { required }),
    ...(output === undefined ? {} : { output }),
    ...(timeouts?.wait === undefined ? {} : { timeouts: { wait: timeouts.wait } }),
    renewal: { recovery: `${BROKER_RECOVERY_MS / 1000}s` },
  };
}
