/** A profile's credential that the broker holds for pods, and who may have its tokens. */

import { isDeepStrictEqual } from 'node:util';
import type { ServiceAccountCaller } from '../callers/caller.ts';
import type { CredentialConfig } from '../config/config.ts';

export interface BrokeredCredential {
  /** `profile/credential`, the path by which it is requested. */
  readonly name: string;
  /** Has the same name. Its paths lie in `volumes`. */
  readonly config: CredentialConfig;
  /** What is mounted for it. */
  readonly volumes: readonly Volume[];
}

/** A pod's volume, filled from Secrets and ConfigMaps of our own namespace. */
export interface Volume {
  readonly directory: string;
  readonly files: readonly VolumeFile[];
}

export interface VolumeFile {
  readonly kind: 'secret' | 'configMap';
  /** The object's name. */
  readonly name: string;
  readonly key: string;
  /** Name of the file in the directory. */
  readonly path: string;
}

/** What profiles say at present. */
export interface BrokeredCredentials {
  /** Why nothing can be said now; undefined once all profiles have been read. */
  unread(): string | undefined;
  /**
   * @returns undefined if it does not exist or is not for this caller, which must not learn the difference. The same
   * object until the profile changes.
   */
  find(profile: string, credential: string, caller: ServiceAccountCaller): BrokeredCredential | undefined;
  /** What the profile now says of it, whoever may have it; undefined if it no longer mentions it. */
  now(name: string): BrokeredCredential | undefined;
}

/** Whether both lead to the same grant, so that a token of one is a token of the other. */
export function isSame(one: BrokeredCredential, other: BrokeredCredential): boolean {
  return isDeepStrictEqual([one.config, one.volumes], [other.config, other.volumes]);
}
