/** Profiles as the injection of a pod sees them. The folder `profiles` finds and reads them. */

import type { UpstreamProtocol } from '../../config/config.ts';
import type { ValueFormat } from '../../config/values.ts';
import type { Problem } from '../../platform/problems.ts';
import type { InjectionDefaults, SidecarMode } from './injection-defaults.ts';
import type { Namespace } from './pod.ts';
import type { SidecarMount } from './sidecar-mounts.ts';

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
