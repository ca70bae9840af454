/** The sidecar's mounts, each a volume of its own. */

import { CA, CONFIG, CREDENTIALS, TOKENS, TRUST } from './pod.ts';

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

export const mountOf = {
  secret(secret: string): SidecarMount {
    return mountOf.credentials(CREDENTIALS.volume, CREDENTIALS.directory, [
      { secret: { name: secret, optional: false } },
    ]);
  },

  /** @param sources of a projected volume. */
  credentials(name: string, mountPath: string, sources: readonly object[]): SidecarMount {
    return {
      name,
      mountPath,
      readOnly: true,
      volume: { projected: { defaultMode: CREDENTIALS_MODE, sources } },
    };
  },

  configMap(configMap: string): SidecarMount {
    const volume = { configMap: { name: configMap, optional: false } };
    return { name: CONFIG.volume, mountPath: CONFIG.directory, readOnly: true, volume };
  },

  configuration(annotation: string): SidecarMount {
    const fieldRef = { fieldPath: `metadata.annotations['${annotation}']` };
    const volume = { downwardAPI: { items: [{ path: CONFIG.key, fieldRef }] } };
    return { name: CONFIG.volume, mountPath: CONFIG.directory, readOnly: true, volume };
  },

  authorities(configMap: string): SidecarMount {
    const items = [{ key: CA.key, path: CA.key }];
    const volume = { configMap: { name: configMap, optional: false, items } };
    return { name: CA.volume, mountPath: CA.directory, readOnly: true, volume };
  },

  /** Memory for public certificates; apps mount it, too. */
  trust(): SidecarMount {
    const volume = { emptyDir: { medium: 'Memory', sizeLimit: TRUST_SIZE } };
    return { name: TRUST.volume, mountPath: TRUST.directory, readOnly: false, volume };
  },

  tokens(): SidecarMount {
    const volume = { emptyDir: { medium: 'Memory', sizeLimit: TOKENS_SIZE } };
    return { name: TOKENS.volume, mountPath: TOKENS.directory, readOnly: false, volume };
  },
};

/** 32 tokens of 64 KiB, twice while replaced, with overhead. */
const TOKENS_SIZE = '8Mi';

/** Possibly in another pod. */
export function isSidecarVolume(name: string): boolean {
  return (
    [CONFIG.volume, CA.volume, TRUST.volume, TOKENS.volume].some((own) => isNumbered(name, own)) ||
    isCredentialsVolume(name)
  );
}

/** Secrets that no app may see. */
export function isCredentialsVolume(name: string): boolean {
  return isNumbered(name, CREDENTIALS.volume);
}

/** Alone, or numbered. */
function isNumbered(name: string, base: string): boolean {
  return name === base || (name.startsWith(`${base}-`) && /^\d+$/.test(name.slice(base.length + 1)));
}
