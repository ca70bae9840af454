/** A TokenProfile or ClusterTokenProfile, judged once when it is first seen. */

import type { Problem } from '../../platform/problems.ts';
import type { LabelSelector } from '../label-selector.ts';
import type { ProfileSpec } from './profile-schema.ts';

export const PROFILE_KINDS = ['TokenProfile', 'ClusterTokenProfile'] as const;
export type ProfileKind = (typeof PROFILE_KINDS)[number];

export const PROFILE_API_VERSION = 'token-sidecar.dev/v1alpha1';

export interface ProfileIdentity {
  readonly kind: ProfileKind;
  readonly name: string;
  /** Absent for the cluster-wide kind. */
  readonly namespace?: string;
  /** Incremented by the API server with each change of the spec; absent in files. */
  readonly generation?: number;
}

/** Who may use a ClusterTokenProfile; nobody by default. */
interface AdmittedNamespaces {
  readonly names?: readonly string[];
  readonly selector?: LabelSelector;
}

/** The service accounts of the admitted namespaces that may have tokens through the broker; all if undefined. */
type AdmittedServiceAccounts = readonly string[] | undefined;

export type JudgedProfile = ValidProfile | InvalidProfile;

export interface ValidProfile {
  readonly state: 'valid';
  readonly identity: ProfileIdentity;
  readonly spec: ProfileSpec;
  readonly namespaces: AdmittedNamespaces;
  readonly serviceAccounts?: AdmittedServiceAccounts;
}

interface InvalidProfile {
  readonly state: 'invalid';
  readonly identity: ProfileIdentity;
  /** As far as they were understood. */
  readonly namespaces: AdmittedNamespaces;
  /** Keys begin with `spec` or `metadata`. */
  readonly problems: readonly Problem[];
}

/** `TokenProfile payments`, the form used in messages. */
export function called({ kind, name }: ProfileIdentity): string {
  return `${kind} ${name}`;
}
