import { hash } from 'node:crypto';
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
  /** Absent in files. */
  readonly generation?: number;
}

/** Nobody by default. */
interface AllowedNamespaces {
  readonly names?: readonly string[];
  readonly selector?: LabelSelector;
}

/** Those that may use the broker; all if undefined. */
type AdmittedServiceAccounts = readonly string[] | undefined;

export type ValidatedProfile = ValidProfile | InvalidProfile;

export interface ValidProfile {
  readonly state: 'valid';
  readonly identity: ProfileIdentity;
  readonly spec: ProfileSpec;
  readonly namespaces: AllowedNamespaces;
  readonly serviceAccounts?: AdmittedServiceAccounts;
}

interface InvalidProfile {
  readonly state: 'invalid';
  readonly identity: ProfileIdentity;
  /** As far as understood. */
  readonly namespaces: AllowedNamespaces;
  /** Keys begin with `spec` or `metadata`. */
  readonly problems: readonly Problem[];
}

/** `TokenProfile payments`. */
export function called({ kind, name }: ProfileIdentity): string {
  return `${kind} ${name}`;
}

export interface ProfileSource {
  unread(): string | undefined;
  namespaced(namespace: string, name: string): ValidatedProfile | undefined;
  cluster(name: string): ValidatedProfile | undefined;
  labels(namespace: string): Readonly<Record<string, string>> | undefined;
}

// What is kept has a fixed size, since anyone who may write a status may write a large one.

export interface ProfileStatus {
  readonly observedGeneration?: number;
  readonly pods?: number;
  readonly outdatedPods?: number;
  readonly conditions?: readonly Condition[];
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
  readonly lastTransitionTime: string;
}

interface KeptStatus {
  /** SHA-256 of its content. */
  readonly says: string;
  readonly valid?: Pick<Condition, 'status' | 'lastTransitionTime'>;
}

/** RFC 3339 to the nanosecond. */
const MAX_TIME_LENGTH = 35;

export function keptStatus(status: ProfileStatus): KeptStatus {
  const last = status.conditions?.find(({ type }) => type === 'Valid');
  const valid = last === undefined || !isOfOurs(last) ? undefined : last;
  return {
    says: saidBy(status),
    ...(valid === undefined
      ? {}
      : { valid: { status: valid.status, lastTransitionTime: valid.lastTransitionTime } }),
  };
}

function isOfOurs({ status, lastTransitionTime }: Condition): boolean {
  return ['True', 'False'].includes(status) && lastTransitionTime.length <= MAX_TIME_LENGTH;
}

/** Without the time of a condition's change. */
function saidBy({ observedGeneration, pods, outdatedPods, conditions = [] }: ProfileStatus): string {
  const told = conditions.map(({ type, status, reason, message }) => [type, status, reason, message]);
  return hash('sha256', JSON.stringify([observedGeneration, pods, outdatedPods, told]), 'base64url');
}
