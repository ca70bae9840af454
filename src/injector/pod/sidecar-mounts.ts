/** The sidecar's mounts, each a volume of its own. */

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
  readonly volume: object;
}

/** Readable by root and the pod's fsGroup. */
const CREDENTIALS_MODE = 0o440;

/** Three files of a few hundred kilobytes, twice while replaced. */
const TRUST_SIZE = '8Mi';

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

export function configMapMount(configMap: string): SidecarMount {
  const volume = { configMap: { name: configMap, optional: false } };
  return { name: CONFIG_VOLUME, mountPath: CONFIG_DIRECTORY, readOnly: true, volume };
}

export function configurationMount(annotation: string): SidecarMount {
  const fieldRef = { fieldPath: `metadata.annotations['${annotation}']` };
  const volume = { downwardAPI: { items: [{ path: CONFIG_KEY, fieldRef }] } };
  return { name: CONFIG_VOLUME, mountPath: CONFIG_DIRECTORY, readOnly: true, volume };
}

export function authoritiesMount(configMap: string): SidecarMount {
  const items = [{ key: CA_KEY, path: CA_KEY }];
  const volume = { configMap: { name: configMap, optional: false, items } };
  return { name: CA_VOLUME, mountPath: CA_DIRECTORY, readOnly: true, volume };
}

/** Memory for public certificates; apps mount it, too. */
export function trustMount(): SidecarMount {
  const volume = { emptyDir: { medium: 'Memory', sizeLimit: TRUST_SIZE } };
  return { name: TRUST_VOLUME, mountPath: TRUST_DIRECTORY, readOnly: false, volume };
}

/** 32 tokens of 64 KiB, twice while replaced, with overhead. */
const TOKENS_SIZE = '8Mi';

export function tokensMount(): SidecarMount {
  const volume = { emptyDir: { medium: 'Memory', sizeLimit: TOKENS_SIZE } };
  return { name: TOKENS_VOLUME, mountPath: TOKENS_DIRECTORY, readOnly: false, volume };
}

/** Possibly in another pod. */
export function isSidecarVolume(name: string): boolean {
  return (
    [CONFIG_VOLUME, CA_VOLUME, TRUST_VOLUME, TOKENS_VOLUME].some((own) => isNumbered(name, own)) ||
    isCredentialsVolume(name)
  );
}

/** Secrets that no app may see. */
export function isCredentialsVolume(name: string): boolean {
  return isNumbered(name, CREDENTIALS_VOLUME);
}

/** Alone, or numbered. */
function isNumbered(name: string, base: string): boolean {
  return name === base || (name.startsWith(`${base}-`) && /^\d+$/.test(name.slice(base.length + 1)));
}
