/** What the injection of a pod knows of its cluster: the version, the broker, the profiles. */

import type { Problem } from '../../platform/problems.ts';
import type { InjectionDefaults } from '../injection-defaults.ts';
import type { AnnotationValue, OverridingAnnotation, ReadAnnotation, SidecarMode } from './annotations.ts';
import type { Namespace } from './pod.ts';
import type { SidecarMount } from './sidecar-mounts.ts';

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

/** The broker as pods know it: where their sidecars request tokens, and the CAs by which they verify it. */
export interface BrokerOfPods {
  /** `https://HOST:PORT`, without a path. */
  readonly url: string;
  /** The audience of the service account tokens shown to the broker. */
  readonly audience: string;
  readonly authorities: BrokerAuthorities;
}

type BrokerAuthorities =
  | { readonly from: 'public' }
  /** A ConfigMap of the pod's namespace, with the key `ca.crt`. */
  | { readonly from: 'config_map'; readonly name: string }
  /** PEM that pods get in an annotation. */
  | { readonly from: 'file'; current(): string };

/** Characters of the PEM: a pod's annotations share 256 KiB. */
export const MAX_AUTHORITIES = 32 * 1024;

/** Annotations of the pod that override its profiles; undefined where it has none. */
export type ProfileOverrides = { readonly [Name in OverridingAnnotation]: Said<Name> | undefined };

/** One of the words that it may be; of others the text as written. */
type Said<Name> = Name extends ReadAnnotation
  ? AnnotationValue<Name> extends string
    ? AnnotationValue<Name>
    : string
  : string;

export interface ProfileRequest {
  readonly names: readonly string[];
  readonly namespace: Namespace;
  /** The pod's service account. */
  readonly serviceAccount: string;
  readonly overrides: ProfileOverrides;
  readonly defaults: Pick<InjectionDefaults, 'allowed' | 'allowInsecureTokenUrl' | 'broker'>;
}

export type ProfileResolution =
  | { readonly state: 'refused'; readonly problems: readonly Problem[] }
  | ({ readonly state: 'resolved' } & ResolvedProfiles);

export interface ResolvedProfiles {
  /** The configuration file, as JSON. It names Secrets, but holds none of their content. */
  readonly configuration: string;
  readonly mounts: readonly SidecarMount[];
  readonly secrets: readonly string[];
  readonly imagePullSecrets: readonly string[];
  readonly mode: SidecarMode;
  readonly intercepts: boolean;
  /** Whether tokens are left as files for the app's containers. */
  readonly tokenFiles: boolean;
  /** Whether tokens are handed out on loopback. */
  readonly tokenEndpoint: boolean;
  /** Whether the pod needs the CAs of the broker in its annotation. */
  readonly brokerAuthorities: boolean;
  /** The profiles with their generations: `TokenProfile/payments@3, ClusterTokenProfile/crm@1`. */
  readonly inUse: string;
  readonly warnings: readonly string[];
}

/** The folder `profiles` finds and reads them. */
export interface Profiles {
  resolve(request: ProfileRequest): ProfileResolution;
}
