import type { LogLevel } from '../../log/logger.ts';
import type { AllowLists } from './allow-lists.ts';
import type { BrokerOfPods } from './broker.ts';

/** What a pod gets whose annotations are silent. Checked when the injector starts, so never wrong by itself. */
export interface InjectionDefaults {
  readonly image: string;
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never';
  /** Secrets that the image is pulled with, in the pod's own namespace. */
  readonly imagePullSecrets?: readonly string[];
  /** User and group of the sidecar, the image's own when absent; `none` where the platform assigns them. */
  readonly runAsUser?: number | 'none';
  readonly secret?: string;
  readonly authUrl?: string;
  readonly realm: string;
  /** Allow a token endpoint on `http://`: the client secret then travels in clear. No annotation can. */
  readonly allowInsecureTokenUrl: boolean;
  readonly scope?: string;
  readonly audience?: string;
  readonly upstream?: string;
  /** ConfigMap, in the pod's namespace, with the CAs that the sidecar trusts besides the public ones. */
  readonly caConfigMap?: string;
  readonly mode: SidecarMode;
  /** What pods may have besides that; `USUAL_MODES` when absent. */
  readonly allowedModes?: readonly SidecarMode[];
  /** Whether to use a native sidecar, where that is decided; otherwise the cluster's version decides. */
  readonly nativeSidecar?: boolean;
  readonly logLevel: LogLevel;
  readonly resources: SidecarResources;
  /** Within which the first token must be obtained before the kubelet restarts the sidecar. */
  readonly startupSeconds: number;
  /** Mark the pod for scrapers that go by annotation, unless it is marked already. */
  readonly prometheusAnnotations: boolean;
  /** What annotations may name; the defaults themselves always may. */
  readonly allowed?: AllowLists;
  /** Who gets the tokens of credentials that profiles leave to it; absent where there is no broker. */
  readonly broker?: BrokerOfPods;
}

export const SIDECAR_MODES = ['reverse', 'forward', 'hosts', 'redirect'] as const;
export type SidecarMode = (typeof SIDECAR_MODES)[number];

/** What pods may have unless the operator says otherwise: `redirect` makes a container that changes the pod's network. */
export const USUAL_MODES = ['reverse', 'forward', 'hosts'] as const satisfies readonly SidecarMode[];

/** Those that a pod may have without a word: the others want to know of which hosts. */
export const DEFAULT_MODES = ['reverse', 'forward'] as const satisfies readonly SidecarMode[];

export interface SidecarResources {
  readonly cpuRequest?: string;
  readonly cpuLimit?: string;
  readonly memoryRequest?: string;
  readonly memoryLimit?: string;
}
