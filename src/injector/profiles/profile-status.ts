/**
 * The status of a profile: what is written there, and the little that is kept of what stands there already. Anyone who
 * may write a status may write a large one: what is kept has a fixed size.
 */

import { hash } from 'node:crypto';

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

export interface KeptStatus {
  /** SHA-256 of its content: equal hashes mean equal content. */
  readonly says: string;
  /** The profile's previous validity, and since when. */
  readonly valid?: Pick<Condition, 'status' | 'lastTransitionTime'>;
}

/** RFC 3339 to the nanosecond has 35 characters. */
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

/** The time of a condition's change is not part of it. */
function saidBy({ observedGeneration, pods, outdatedPods, conditions = [] }: ProfileStatus): string {
  const told = conditions.map(({ type, status, reason, message }) => [type, status, reason, message]);
  return hash('sha256', JSON.stringify([observedGeneration, pods, outdatedPods, told]), 'base64url');
}
