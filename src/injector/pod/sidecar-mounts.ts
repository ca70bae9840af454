/** The sidecar's mounts, each a volume of its own: Secrets, CAs, its configuration, what apps have to trust. */

import {
  CA_DIRECTORY,
  CA_KEY,
  CA_VOLUME,
  CONFIG_DIRECTORY,
  CONFIG_KEY,
  CONFIG_VOLUME,
  CREDENTIALS_PATH,
  CREDENTIALS_VOLUME,
  TOKENS_DIRECTORY,
  TOKENS_VOLUME,
  TRUST_DIRECTORY,
  TRUST_VOLUME,
} from './pod.ts';

export interface SidecarMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly: boolean;
  /** The volume, without its name. */
  readonly volume: object;
}

/** 0440: readable by root and by the pod's fsGroup. */
const CREDENTIALS_MODE = 0o440;

/** Three files of a few hundred kilobytes, and a second copy of each while it is replaced. */
const TRUST_SIZE = '8Mi';

/** The Secret, with all its keys. */
export function secretMount(secret: string): SidecarMount {
  return credentialsMount(CREDENTIALS_VOLUME, CREDENTIALS_PATH, [
    { secret: { name: secret, optional: false } },
  ]);
}

/** @param sources of a projected volume. */
export function credentialsMount(name: string, mountPath: string, sources: readonly object[]): SidecarMount {
  return {
    name,
    mountPath,
    readOnly: true,
    volume: { projected: { defaultMode: CREDENTIALS_MODE, sources } },
  };
}

/** A ConfigMap with the configuration file. */
export function configMapMount(configMap: string): SidecarMount {
  const volume = { configMap: { name: configMap, optional: false } };
  return { name: CONFIG_VOLUME, mountPath: CONFIG_DIRECTORY, readOnly: true, volume };
}

/** The configuration file as an annotation of the pod itself. */
export function configurationMount(annotation: string): SidecarMount {
  const fieldRef = { fieldPath: `metadata.annotations['${annotation}']` };
  const volume = { downwardAPI: { items: [{ path: CONFIG_KEY, fieldRef }] } };
  return { name: CONFIG_VOLUME, mountPath: CONFIG_DIRECTORY, readOnly: true, volume };
}

/** A ConfigMap with CAs. */
export function authoritiesMount(configMap: string): SidecarMount {
  const items = [{ key: CA_KEY, path: CA_KEY }];
  const volume = { configMap: { name: configMap, optional: false, items } };
  return { name: CA_VOLUME, mountPath: CA_DIRECTORY, readOnly: true, volume };
}

/** Memory where the sidecar leaves its public certificates; apps mount it too. */
export function trustMount(): SidecarMount {
  const volume = { emptyDir: { medium: 'Memory', sizeLimit: TRUST_SIZE } };
  return { name: TRUST_VOLUME, mountPath: TRUST_DIRECTORY, readOnly: false, volume };
}

/**
 * 32 tokens of 64 KiB, and a second copy of each while it is replaced: 4 MiB, and as much again for the file system's
 * overhead.
 */
const TOKENS_SIZE = '8Mi';

/** Memory where the sidecar leaves tokens; apps mount it too. */
export function tokensMount(): SidecarMount {
  const volume = { emptyDir: { medium: 'Memory', sizeLimit: TOKENS_SIZE } };
  return { name: TOKENS_VOLUME, mountPath: TOKENS_DIRECTORY, readOnly: false, volume };
}

/** Whether a volume of the sidecar has this name, in this pod or possibly in another. */
export function isSidecarVolume(name: string): boolean {
  return (
    [CONFIG_VOLUME, CA_VOLUME, TRUST_VOLUME, TOKENS_VOLUME].some((own) => isNumbered(name, own)) ||
    isCredentialsVolume(name)
  );
}

/** Whether a volume of this name holds secrets that no app may see. */
export function isCredentialsVolume(name: string): boolean {
  return isNumbered(name, CREDENTIALS_VOLUME);
}

/** The name itself, or a numbered one that begins with it. */
function isNumbered(name: string, base: string): boolean {
  return name === base || (name.startsWith(`${base}-`) && /^\d+$/.test(name.slice(base.length + 1)));
}
