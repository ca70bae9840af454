import type { Profiles } from './profiles.ts';

/** What is known of the cluster that the pod is for. */
export interface Cluster {
  /** Absent when it is not known. */
  readonly version?: ClusterVersion;
  /** Absent where they are switched off. */
  readonly profiles?: Profiles;
  /** Of a namespace that is watched; absent where none are. */
  readonly namespaceLabels?: (name: string) => Readonly<Record<string, string>> | undefined;
}

export interface ClusterVersion {
  readonly major: number;
  readonly minor: number;
}

/** Kubernetes 1.29 is the first with native sidecars switched on. */
export function hasNativeSidecars({ major, minor }: ClusterVersion): boolean {
  return major > 1 || (major === 1 && minor >= 29);
}
