/** What ClusterTokenProfiles say of the broker's credentials, and of who may have their tokens. */

import { join } from 'node:path';
import type { SidecarMount } from '../injector/pod/sidecar-mounts.ts';
import { credentialsViaBroker } from '../injector/profiles/broker-credentials.ts';
import { isAdmitted } from '../injector/profiles/find-profiles.ts';
import type { JudgedProfile, ProfileSource, ValidProfile } from '../injector/profiles/profile.ts';
import { credentialFiles } from '../token/credentials.ts';
import type { BrokeredCredential, BrokeredCredentials, VolumeFile } from './secret-volume.ts';

type ByName = ReadonlyMap<string, BrokeredCredential>;

/** @param directory where Secrets are laid out. */
export function brokeredCredentials(source: ProfileSource, directory: string): BrokeredCredentials {
  /** Computed once for each state of a profile. */
  const known = new WeakMap<JudgedProfile, ByName>();

  function credentialsOf(judged: ValidProfile): ByName {
    const found = known.get(judged) ?? workOut(judged);
    known.set(judged, found);
    return found;
  }

  function workOut(judged: ValidProfile): ByName {
    const profile = judged.identity.name;
    const root = (name: string): string => join(directory, profile, name);
    return new Map(
      credentialsViaBroker(judged, credentialFiles, root).map(({ name: own, config, mounts }) => {
        const name = `${profile}/${own}`;
        const volumes = mounts.map((mount) => ({ directory: mount.mountPath, files: filesIn(mount) }));
        return [own, { name, config: { ...config, name }, volumes }];
      }),
    );
  }

  return {
    unread: () => source.unread(),
    find(profile, credential, { namespace, serviceAccount }) {
      const judged = source.cluster(profile);
      if (judged?.state !== 'valid' || !isAdmitted(judged, { name: namespace }, source)) return undefined;
      const { serviceAccounts } = judged;
      if (serviceAccounts !== undefined && !serviceAccounts.includes(serviceAccount)) return undefined;
      return credentialsOf(judged).get(credential);
    },
    now(name) {
      const [profile, credential] = name.split('/') as [string, string];
      const judged = source.cluster(profile);
      return judged?.state === 'valid' ? credentialsOf(judged).get(credential) : undefined;
    },
  };
}

interface Source {
  readonly secret?: Projected;
  readonly configMap?: Projected;
}
interface Projected {
  readonly name: string;
  readonly items: readonly { readonly key: string; readonly path: string }[];
}

function filesIn({ volume }: SidecarMount): readonly VolumeFile[] {
  const { sources } = (volume as { readonly projected: { readonly sources: readonly Source[] } }).projected;
  const of = (kind: VolumeFile['kind'], projected: Projected | undefined): VolumeFile[] =>
    projected === undefined
      ? []
      : projected.items.map(({ key, path }) => ({ kind, name: projected.name, key, path }));
  return sources.flatMap(({ secret, configMap }) => [...of('secret', secret), ...of('configMap', configMap)]);
}
