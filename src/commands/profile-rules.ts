/** What profiles resolve to. The injector and `inject` load this only if there are profiles. */

import type { Profiles } from '../injector/pod/profiles.ts';
import { judgeProfile } from '../injector/profiles/judge-profile.ts';
import { manifestProfiles } from '../injector/profiles/manifest-profiles.ts';
import type { JudgedProfile, ProfileIdentity } from '../injector/profiles/profile.ts';
import type { ProfileSource } from '../injector/profiles/profile-source.ts';
import { createProfiles } from '../injector/profiles/resolve-profiles.ts';
import { credentialFiles } from '../token/credentials.ts';

export function judge(identity: ProfileIdentity, spec: unknown): JudgedProfile {
  return judgeProfile(identity, spec, credentialFiles);
}

export function profilesOf(source: ProfileSource): Profiles {
  return createProfiles(source, credentialFiles);
}

/** @param namespace for profiles that name none. */
export function profilesInManifests(manifests: readonly unknown[], namespace: string): Profiles {
  return profilesOf(manifestProfiles(manifests, namespace, credentialFiles));
}
