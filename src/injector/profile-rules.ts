/** Loaded only if there are profiles. */

import { credentialFiles } from '../token/credentials.ts';
import type { Profiles } from './pod/cluster.ts';
import { manifestProfiles } from './profiles/find-profiles.ts';
import { judgeProfile } from './profiles/judge-profile.ts';
import type { JudgedProfile, ProfileIdentity, ProfileSource } from './profiles/profile.ts';
import { createProfiles } from './profiles/resolve-profiles.ts';

export function judge(identity: ProfileIdentity, spec: unknown): JudgedProfile {
  return judgeProfile(identity, spec, credentialFiles);
}

export function profilesOf(source: ProfileSource): Profiles {
  return createProfiles(source, credentialFiles);
}

export function profilesInManifests(manifests: readonly unknown[], namespace: string): Profiles {
  return profilesOf(manifestProfiles(manifests, namespace, credentialFiles));
}
