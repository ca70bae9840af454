/** Loaded only if there are profiles. */

import { credentialFiles } from '../token/credentials.ts';
import type { Profiles } from './pod/cluster.ts';
import { manifestProfiles } from './profiles/find-profiles.ts';
import type { ProfileIdentity, ProfileSource, ValidatedProfile } from './profiles/profile.ts';
import { createProfiles } from './profiles/resolve-profiles.ts';
import { validateProfile } from './profiles/validate-profile.ts';

export function judge(identity: ProfileIdentity, spec: unknown): ValidatedProfile {
  return validateProfile(identity, spec, credentialFiles);
}

export function profilesOf(source: ProfileSource): Profiles {
  return createProfiles(source, credentialFiles);
}

export function profilesInManifests(manifests: readonly unknown[], namespace: string): Profiles {
  return profilesOf(manifestProfiles(manifests, namespace, credentialFiles));
}
