/** A credential of a profile that the broker holds for pods, and who may have its tokens. */

import { isDeepStrictEqual } from 'node:util';
import type { ServiceAccountCaller } from '../callers/caller.ts';
import type { CredentialConfig } from '../config/config.ts';

export interface BrokeredCredential {
  /** `profile/credential`, the path that it is asked for by. */
  readonly name: string;
  /** Named as this is. Its paths are those of `volumes`. */
  readonly config: CredentialConfig;
  /** What is mounted for it. */
  readonly volumes: readonly Volume[];
}

/** A volume of a pod, with the Secrets and ConfigMaps of our own namespace in it. */
export interface Volume {
  readonly directory: string;
  readonly files: readonly VolumeFile[];
}

export interface VolumeFile {
  readonly kind: 'secret' | 'configMap';
  /** Of the object. */
  readonly name: string;
  readonly key: string;
  /** Name of the file in the directory. */
  readonly path: string;
}

/** What profiles say now. */
export interface BrokeredCredentials {
  /** Why nothing can be said now; undefined once all profiles have been read. */
  unread(): string | undefined;
  /**
   * @returns undefined where there is none of that name, or it is not for this caller: which of both is nobody's business
   * who may not have it. The same object until the profile changes.
   */
  find(profile: string, credential: string, caller: ServiceAccountCaller): BrokeredCredential | undefined;
  /** What the profile says of it now, whoever may have it; undefined where it says nothing of it any more. */
  now(name: string): BrokeredCredential | undefined;
}

/** Whether both are asked for alike, so that a token of one is a token of the other. */
export function isSame(one: BrokeredCredential, other: BrokeredCredential): boolean {
  return isDeepStrictEqual([one.config, one.volumes], [other.config, other.volumes]);
}
