import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { CredentialConfig, CredentialSettings } from '../config/config.ts';
import type { DirectoryWatchOptions, WatchMode } from '../platform/mounted/directory-watch.ts';
import {
  type InvalidSecret,
  type MountedSecret,
  openLiveSecret,
  readMountedSecret,
} from '../platform/mounted/mounted-secret.ts';
import { type ClientCredentials, clientFiles, understandClient } from './client/client-authentication.ts';
import { type ProofKey, parseProofKey } from './dpop/proof.ts';
import { type GrantMaterial, grantFiles, understandGrant } from './grants/grants.ts';

export type Credentials = ClientCredentials & {
  readonly material?: GrantMaterial;
  /** To which tokens are bound; the process's own by default. */
  readonly proofKey?: ProofKey;
};

export type CredentialsResult =
  | { readonly state: 'loaded'; readonly credentials: Credentials; readonly detail?: undefined }
  | InvalidSecret;

type Settings = Pick<CredentialSettings, 'directory' | 'clientId' | 'clientAuth' | 'grant' | 'dpop'>;

export function credentialFiles(settings: Settings): readonly string[] {
  const keyFile = settings.dpop?.keyFile;
  const proofFiles = keyFile === undefined ? [] : [keyFile];
  return [...new Set([...clientFiles(settings), ...grantFiles(settings), ...proofFiles])];
}

/** Never throws. The state names no secret value. */
export async function readCredentials(settings: Settings): Promise<CredentialsResult> {
  const reading = await readMountedSecret(settings.directory, credentialFiles(settings));
  return reading.state === 'loaded' ? understandCredentials(settings, reading.values) : reading;
}

export function understandCredentials(
  settings: Settings,
  files: Readonly<Record<string, string>>,
): CredentialsResult {
  const mounted = mountedFiles(settings.directory, files);
  const client = understandClient(settings, mounted);
  if ('state' in client) return client;
  const material = understandGrant(settings, mounted);
  if (material !== undefined && 'state' in material) return material;
  const proofKey = understandProofKey(settings.dpop?.keyFile, mounted);
  if (proofKey !== undefined && 'state' in proofKey) return proofKey;
  const credentials = {
    ...client,
    ...(material === undefined ? {} : { material }),
    ...(proofKey === undefined ? {} : { proofKey }),
  };
  return { state: 'loaded', credentials };
}

function understandProofKey(
  keyFile: string | undefined,
  files: MountedFiles,
): ProofKey | InvalidSecret | undefined {
  if (keyFile === undefined) return undefined;
  const key = parseProofKey(files.content(keyFile));
  return 'expected' in key ? files.malformed(keyFile, key.expected) : key;
}

export interface MountedFiles {
  readonly directory: string;
  content(name: string): string;
  /** @param expected a noun phrase that holds nothing of the file. */
  malformed(name: string, expected: string): InvalidSecret;
}

function mountedFiles(directory: string, files: Readonly<Record<string, string>>): MountedFiles {
  return {
    directory,
    content: (name) => files[name] ?? '',
    malformed: (name, expected) => ({
      state: 'malformed',
      detail: `${join(directory, name)} is not ${expected}`,
    }),
  };
}

export interface LiveCredentials {
  /** Equal readings hold one credentials object. */
  current(): CredentialsResult;
  /** Reads again; resolves once changes were announced. Never rejects. */
  refresh(): Promise<void>;
  /** Calls back after each change, good or bad. Returns a function that stops it. */
  onChange(listener: (reading: CredentialsResult) => void): () => void;
  /** Calls back after a rewriting with equal content. */
  onRewrite(listener: () => void): () => void;
  watchMode(): WatchMode;
  onWatchMode(listener: (mode: WatchMode) => void): () => void;
  close(): void;
}

/** Never rejects: missing credentials are a reading, too. */
export async function openLiveCredentials(
  config: CredentialConfig,
  options: Omit<DirectoryWatchOptions, 'onMode'>,
): Promise<LiveCredentials> {
  const modeListeners = new Set<(mode: WatchMode) => void>();
  let mode: WatchMode = { by: 'notification' };

  function changeMode(next: WatchMode): void {
    mode = next;
    for (const listener of modeListeners) listener(next);
  }

  const secret = await openLiveSecret(config.directory, credentialFiles(config), {
    ...options,
    onMode: changeMode,
  });
  const listeners = new Set<(reading: CredentialsResult) => void>();
  const rewriteListeners = new Set<() => void>();
  let lastLoaded: CredentialsResult | undefined;
  let current = understand(secret.current());

  function understand(mounted: MountedSecret): CredentialsResult {
    if (mounted.state !== 'loaded') return mounted;
    const reading = understandCredentials(config, mounted.values);
    if (reading.state !== 'loaded') return reading;
    if (isDeepStrictEqual(reading, lastLoaded)) return lastLoaded as CredentialsResult;
    lastLoaded = reading;
    return reading;
  }

  secret.onChange((mounted) => {
    const reading = understand(mounted);
    if (isDeepStrictEqual(reading, current)) {
      if (reading.state === 'loaded') for (const listener of rewriteListeners) listener();
      return;
    }
    current = reading;
    for (const listener of listeners) listener(reading);
  });

  return {
    current: () => current,
    refresh: () => secret.refresh(),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onRewrite(listener) {
      rewriteListeners.add(listener);
      return () => rewriteListeners.delete(listener);
    },
    watchMode: () => mode,
    onWatchMode(listener) {
      modeListeners.add(listener);
      return () => modeListeners.delete(listener);
    },
    close: () => secret.close(),
  };
}
