/** What the injection of a pod knows besides the pod: the operator's defaults, the cluster, the broker, the profiles. */

import type { UpstreamProtocol } from '../../config/config.ts';
import type { ValueFormat } from '../../config/values.ts';
import type { LogLevel } from '../../platform/log/logger.ts';
import type { Problem } from '../../platform/problems.ts';
import type { AllowLists } from './allow-lists.ts';
import type { Namespace } from './pod.ts';
import type { SidecarMount } from './sidecar-mounts.ts';

/** What a pod gets if its annotations are silent. Checked when the injector starts, so never wrong by itself. */
export interface InjectionDefaults {
  readonly image: string;
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never';
  /** Secrets in the pod's own namespace that the image is pulled with. */
  readonly imagePullSecrets?: readonly string[];
  /** User and group of the sidecar, the image's own if absent; `none` if the platform assigns them. */
  readonly runAsUser?: number | 'none';
  readonly secret?: string;
  readonly authUrl?: string;
  readonly realm: string;
  /** Allow a token endpoint on `http://`: the client secret then travels in clear. No annotation can allow this. */
  readonly allowInsecureTokenUrl: boolean;
  readonly scope?: string;
  readonly audience?: string;
  readonly upstream?: string;
  /** ConfigMap in the pod's namespace, with CAs that the sidecar trusts besides the public ones. */
  readonly caConfigMap?: string;
  readonly mode: SidecarMode;
  /** The modes that pods may have besides `mode`; `USUAL_MODES` by default. */
  readonly allowedModes?: readonly SidecarMode[];
  /** Whether to use a native sidecar; if absent, the cluster's version decides. */
  readonly nativeSidecar?: boolean;
  readonly logLevel: LogLevel;
  readonly resources: SidecarResources;
  /** The time for the first token, after which the kubelet restarts the sidecar. */
  readonly startupSeconds: number;
  /** Mark the pod for scrapers that look for annotations, unless it is marked already. */
  readonly prometheusAnnotations: boolean;
  /** What annotations may name; the defaults themselves are always allowed. */
  readonly allowed?: AllowLists;
  /** The broker that requests the tokens of credentials that profiles leave to it; absent if there is none. */
  readonly broker?: BrokerOfPods;
}

export const SIDECAR_MODES = ['reverse', 'forward', 'hosts', 'redirect'] as const;
export type SidecarMode = (typeof SIDECAR_MODES)[number];

/** The modes allowed by default: `redirect` adds a container that changes the pod's network. */
export const USUAL_MODES = ['reverse', 'forward', 'hosts'] as const satisfies readonly SidecarMode[];

/** The modes that can be a default: the others need a list of hosts. */
export const DEFAULT_MODES = ['reverse', 'forward'] as const satisfies readonly SidecarMode[];

export interface SidecarResources {
  readonly cpuRequest?: string;
  readonly cpuLimit?: string;
  readonly memoryRequest?: string;
  readonly memoryLimit?: string;
}

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

/** Annotations of the pod that override its profiles. */
export interface ProfileOverrides {
  readonly secret?: string | undefined;
  readonly authUrl?: string | undefined;
  readonly realm?: string | undefined;
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
  readonly upstream?: string | undefined;
  readonly protocol?: UpstreamProtocol | undefined;
  readonly hosts?: string | undefined;
}

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

const MAX_PROFILES = 16;

/** Names separated by commas, each once. */
export const profileNames: ValueFormat<readonly string[]> = {
  expected: `1 to ${MAX_PROFILES} names of profiles, by commas, each once`,
  parse(text) {
    const names = text.split(',').map((name) => name.trim());
    const isRight =
      names.length <= MAX_PROFILES &&
      new Set(names).size === names.length &&
      names.every((name) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name));
    return isRight ? names : undefined;
  },
};
