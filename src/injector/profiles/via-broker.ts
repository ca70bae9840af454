/** What the broker holds for the pods of a ClusterTokenProfile: each of its credentials that is `via: broker`, separately. */

import type { CredentialConfig } from '../../config/config.ts';
import type { Problem } from '../../platform/problems.ts';
import type { SidecarMount } from '../pod/sidecar-mounts.ts';
import { credentialSources, type FilesOf } from './credential-sources.ts';
import type { ValidProfile } from './profile.ts';
import { type OwnedCredential, profileEntries, withMounts } from './profile-entries.ts';
import { planMounts } from './profile-mounts.ts';
import { resolveEntries } from './resolve-entries.ts';

interface CredentialViaBroker {
  /** Its name in the profile, or the profile's own if it has none. */
  readonly name: string;
  /** Its paths are below the root. */
  readonly config: CredentialConfig;
  /** Projected volumes, below the root too. */
  readonly mounts: readonly SidecarMount[];
}

/** @param root directory for the paths of a credential of this name. */
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
