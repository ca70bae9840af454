import type { Problem } from '../../platform/problems.ts';
import type { InjectionDefaults } from '../injection-defaults.ts';
import type { AnnotationValue, OverridingAnnotation, ReadAnnotation, SidecarMode } from './annotations.ts';
import type { Namespace } from './pod.ts';
import type { SidecarMount } from './sidecar-mounts.ts';

export interface Cluster {
  /** Absent if unknown. */
  readonly version?: ClusterVersion;
  readonly profiles?: Profiles;
  readonly namespaceLabels?: (name: string) => Readonly<Record<string, string>> | undefined;
}

export interface ClusterVersion {
  readonly major: number;
  readonly minor: number;
}

export interface BrokerOfPods {
  /** `https://HOST:PORT`, without a path. */
  readonly url: string;
  /** Of the service account tokens shown to the broker. */
  readonly audience: string;
  readonly authorities: BrokerAuthorities;
}

type BrokerAuthorities =
  | { readonly from: 'public' }
  /** Of the pod's namespace, with the key `ca.crt`. */
  | { readonly from: 'config_map'; readonly name: string }
  /** PEM. */
  | { readonly from: 'file'; current(): string };

/** Characters: a pod's annotations share 256 KiB. */
export const MAX_AUTHORITIES = 32 * 1024;

export type ProfileOverrides = { readonly [Name in OverridingAnnotation]: Said<Name> | undefined };

/** A word of its list, or the text as written. */
type Said<Name> = Name extends ReadAnnotation
  ? AnnotationValue<Name> extends string
    ? AnnotationValue<Name>
    : string
  : string;

export interface ProfileRequest {
  readonly names: readonly string[];
  readonly namespace: Namespace;
  readonly serviceAccount: string;
  readonly overrides: ProfileOverrides;
  readonly defaults: Pick<InjectionDefaults, 'allowed' | 'allowInsecureTokenUrl' | 'broker'>;
}

export type ProfileResolution =
  | { readonly state: 'refused'; readonly problems: readonly Problem[] }
  | ({ readonly state: 'resolved' } & ResolvedProfiles);

export interface ResolvedProfiles {
  /** JSON. It names Secrets, but holds none of their content. */
  readonly configuration: string;
  readonly mounts: readonly SidecarMount[];
  readonly secrets: readonly string[];
  readonly imagePullSecrets: readonly string[];
  readonly mode: SidecarMode;
  readonly intercepts: boolean;
  /** For the app's containers. */
  readonly tokenFiles: boolean;
  /** On loopback. */
  readonly tokenEndpoint: boolean;
  readonly brokerAuthorities: boolean;
  /** With generations: `TokenProfile/payments@3, ClusterTokenProfile/crm@1`. */
  readonly inUse: string;
  readonly warnings: readonly string[];
}

export interface Profiles {
  resolve(request: ProfileRequest): ProfileResolution;
}
