import type { LogLevel } from '../../platform/log/logger.ts';
import type { AllowLists } from './allow-lists.ts';
import type { BrokerOfPods } from './broker.ts';

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
