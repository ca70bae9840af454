/** A TokenProfile or ClusterTokenProfile, judged once when it is seen. */

import type { Problem } from '../../config/problems.ts';
import type { LabelSelector } from '../label-selector.ts';
import type { ProfileSpec } from './profile-schema.ts';

export const PROFILE_KINDS = ['TokenProfile', 'ClusterTokenProfile'] as const;
export type ProfileKind = (typeof PROFILE_KINDS)[number];

export const PROFILE_API_VERSION = 'token-sidecar.dev/v1alpha1';

export interface ProfileIdentity {
  readonly kind: ProfileKind;
  readonly name: string;
  /** Absent for the kind of the whole cluster. */
  readonly namespace?: string;
  /** Counted by the API server with each change of the spec; absent in files. */
  readonly generation?: number;
}

/** Who may use a ClusterTokenProfile; nobody where nothing is said. */
export interface AdmittedNamespaces {
  readonly names?: readonly string[];
  readonly selector?: LabelSelector;
}

/** Of the admitted namespaces, the service accounts that may have tokens by way of the broker; all where undefined. */
export type AdmittedServiceAccounts = readonly string[] | undefined;

export type JudgedProfile = ValidProfile | InvalidProfile;

export interface ValidProfile {
  readonly state: 'valid';
  readonly identity: ProfileIdentity;
  readonly spec: ProfileSpec;
  readonly namespaces: AdmittedNamespaces;
  readonly serviceAccounts?: AdmittedServiceAccounts;
}

export interface InvalidProfile {
  readonly state: 'invalid';
  readonly identity: ProfileIdentity;
  /** As far as they were understood. */
  readonly namespaces: AdmittedNamespaces;
  /** Keys begin with `spec` or `metadata`. */
  readonly problems: readonly Problem[];
}

/** `TokenProfile payments`, as messages call it. */
export function called({ kind, name }: ProfileIdentity): string {
  return `${kind} ${name}`;
}
