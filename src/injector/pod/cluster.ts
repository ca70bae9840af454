import type { Profiles } from './profiles.ts';

/** What is known of the pod's cluster. */
export interface Cluster {
  /** Absent if unknown. */
  readonly version?: ClusterVersion;
  /** Absent if they are switched off. */
  readonly profiles?: Profiles;
  /** Labels of a watched namespace; absent if none are watched. */
  readonly namespaceLabels?: (name: string) => Readonly<Record<string, string>> | undefined;
}

export interface ClusterVersion {
  readonly major: number;
  readonly minor: number;
}

/** Kubernetes 1.29 is the first to enable native sidecars by default. */
export function hasNativeSidecars({ major, minor }: ClusterVersion): boolean {
  return major > 1 || (major === 1 && minor >= 29);
}
