/** Where the objects that profiles name are mounted in the sidecar: each Secret and each set of CAs in its own volume. */

import { BROKER_CA } from '../pod/annotations.ts';
import { AUTHORITIES_PATH, CA_KEY, CA_VOLUME, CREDENTIALS_PATH, CREDENTIALS_VOLUME } from '../pod/names.ts';
import { credentialsMount, type SidecarMount } from '../pod/sidecar-mounts.ts';

export interface AuthoritiesReference {
  readonly configMap?: { readonly name: string; readonly key?: string | undefined } | undefined;
  readonly secret?: { readonly name: string; readonly key?: string | undefined } | undefined;
}

export interface ProfileMounts {
  /** Path of the CAs. Those from the same key of the same object are mounted once. */
  authorities(from: AuthoritiesReference): string;
  /** Path of the CAs in the pod's annotation. */
  brokerAuthorities(): string;
  /** Paths of a client certificate and its key. */
  certificate(secret: string): { readonly certFile: string; readonly keyFile: string };
  /** The directory of an egress proxy's user name and password. */
  proxyCredentials(secret: string): string;
  /** @param sources of a projected volume. */
  credential(directory: string, sources: readonly object[]): void;
  needs(secret: string): void;
  readonly all: readonly SidecarMount[];
  readonly secrets: ReadonlySet<string>;
}

/** The directory of a credential, by its name in the sidecar. */
export function credentialDirectory(name: string): string {
  return `${CREDENTIALS_PATH}/${name}`;
}

export function planMounts(): ProfileMounts {
  const all: SidecarMount[] = [];
  const secrets = new Set<string>();
  const placed = new Map<string, string>();

  /** Volumes of a kind are numbered: their names have no room for those of credentials. */
  function nextVolume(base: string): string {
    const count = all.filter(({ name }) => name.startsWith(`${base}-`)).length;
    return `${base}-${count + 1}`;
  }

  function once(what: string, place: () => string): string {
    const path = placed.get(what) ?? place();
    placed.set(what, path);
    return path;
  }

  /** The directory where these keys of a Secret are mounted, once for all users. */
  function keysOf(secret: string, use: 'tls' | 'proxy', keys: readonly string[]): string {
    secrets.add(secret);
    return once(`${use} ${secret}`, () => {
      const volume = nextVolume(CREDENTIALS_VOLUME);
      const mountPath = `${CREDENTIALS_PATH}-${use}/${volume.slice(CREDENTIALS_VOLUME.length + 1)}`;
      const items = keys.map((key) => ({ key, path: key }));
      all.push(credentialsMount(volume, mountPath, [{ secret: { name: secret, optional: false, items } }]));
      return mountPath;
    });
  }

  /** The path of CAs in their own volume, once for all users. */
  function placeAuthorities(what: string, source: object): string {
    return once(what, () => {
      const volume = nextVolume(CA_VOLUME);
      const mountPath = `${AUTHORITIES_PATH}/${volume.slice(CA_VOLUME.length + 1)}`;
      all.push(credentialsMount(volume, mountPath, [source]));
      return `${mountPath}/${CA_KEY}`;
    });
  }

  return {
    all,
    secrets,
    authorities({ configMap, secret }) {
      const { name, key = CA_KEY } = configMap ?? secret ?? { name: '' };
      if (secret !== undefined) secrets.add(name);
      const source = { name, optional: false, items: [{ key, path: CA_KEY }] };
      return placeAuthorities(
        JSON.stringify([configMap === undefined, name, key]),
        configMap === undefined ? { secret: source } : { configMap: source },
      );
    },
    brokerAuthorities() {
      const fieldRef = { fieldPath: `metadata.annotations['${BROKER_CA}']` };
      return placeAuthorities('broker', { downwardAPI: { items: [{ path: CA_KEY, fieldRef }] } });
    },
    certificate(secret) {
      const directory = keysOf(secret, 'tls', ['tls.crt', 'tls.key']);
      return { certFile: `${directory}/tls.crt`, keyFile: `${directory}/tls.key` };
    },
    proxyCredentials: (secret) => keysOf(secret, 'proxy', ['username', 'password']),
    credential(directory, sources) {
      all.push(credentialsMount(nextVolume(CREDENTIALS_VOLUME), directory, sources));
    },
    needs: (secret) => void secrets.add(secret),
  };
}
