/** A volume as the kubelet would mount it, filled from watched objects. */

import { rm } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { ServiceAccountCaller } from '../callers/caller.ts';
import type { CredentialConfig } from '../config/config.ts';
import { messageOf } from '../platform/errors.ts';
import type { ApiObject, KubernetesApi } from '../platform/kubernetes/api.ts';
import { watchObject } from '../platform/kubernetes/collection-watch.ts';
import type { Logger } from '../platform/log/logger.ts';
import { type KubeletSecret, layOutSecret, type SecretValues } from '../platform/mounted/secret-layout.ts';
import { doublingMs } from '../platform/time/async.ts';
import type { Clock } from '../platform/time/clock.ts';

export interface LiveVolume {
  /** The directory can be watched. Never rejects. */
  readonly made: Promise<void>;
  /** Every object was seen or missing, and the writing has ended, perhaps in failure. Never rejects. */
  readonly filled: Promise<void>;
  close(): Promise<void>;
}

/** After a failed write, for example to a full disk. */
const RETRY = { firstMs: 1000, maxMs: 60_000 };

interface LiveVolumeOptions {
  readonly objects: WatchedObjects;
  readonly clock: Clock;
  readonly log: Logger;
}

export function openLiveVolume(
  { directory, files }: Volume,
  { objects, clock, log }: LiveVolumeOptions,
): LiveVolume {
  const filled = Promise.withResolvers<void>();
  const values = new Map<string, ObjectValues>();
  const wanted = new Set(files.map(({ kind, name }) => `${kind} ${name}`));
  const names = files.map(({ path }) => path);
  let closed = false;
  let layout: KubeletSecret | undefined;
  let failures = 0;
  let cancelRetry: (() => void) | undefined;

  function contents(): SecretValues {
    return Object.fromEntries(
      files.flatMap(({ kind, name, key, path }) => {
        const value = values.get(`${kind} ${name}`)?.[key];
        return value === undefined ? [] : [[path, value]];
      }),
    );
  }

  async function write(): Promise<void> {
    if (closed) return;
    cancelRetry?.();
    const isKnown = values.size === wanted.size;
    try {
      // Readers find files missing at first, and watch for them.
      layout ??= await layOutSecret(directory, {}, names);
      if (isKnown) await layout.update(contents());
      failures = 0;
    } catch (error) {
      const retryInMs = doublingMs(failures++, RETRY);
      const what =
        layout === undefined
          ? 'the directory of a credential cannot be made'
          : 'files of a credential cannot be written';
      log.error({ err: messageOf(error), directory, retryInMs }, what);
      if (!closed) cancelRetry = clock.after(retryInMs, writeNext);
    }
    if (isKnown) filled.resolve();
  }

  let writing: Promise<void> = Promise.resolve();
  function writeNext(): void {
    writing = writing.then(write);
  }

  writeNext();
  const made = writing;

  const ends = [...wanted].map((key) => {
    const [kind, name] = key.split(' ') as ['secret' | 'configMap', string];
    return objects.watch(kind, name, (next) => {
      values.set(key, next);
      if (values.size === wanted.size) writeNext();
    });
  });

  return {
    made,
    filled: filled.promise,
    async close() {
      closed = true;
      cancelRetry?.();
      for (const end of ends) end();
      await writing;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

type ObjectValues = Readonly<Record<string, Buffer>>;

interface WatchedObjects {
  /** Calls back with the values now and after each change. Returns a function that stops it. */
  watch(kind: VolumeFile['kind'], name: string, listener: (values: ObjectValues) => void): () => void;
}

interface ValuesObject extends ApiObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
}

interface Watched {
  values: ObjectValues | undefined;
  readonly listeners: Set<(values: ObjectValues) => void>;
  readonly end: () => void;
}

const COLLECTIONS = { secret: 'secrets', configMap: 'configmaps' } as const;

export function watchObjects(
  api: KubernetesApi,
  namespace: string,
  options: Parameters<typeof watchObject>[3],
): WatchedObjects {
  const watched = new Map<string, Watched>();

  function begin(kind: VolumeFile['kind'], name: string): Watched {
    const listeners: Watched['listeners'] = new Set();
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/${COLLECTIONS[kind]}`;
    const one: Watched = {
      values: undefined,
      listeners,
      end: watchObject<ValuesObject>(api, path, name, options, (object) => {
        const values = valuesOf(kind, object);
        one.values = values;
        for (const listener of listeners) listener(values);
      }),
    };
    return one;
  }

  return {
    watch(kind, name, listener) {
      const key = `${kind} ${name}`;
      const one = watched.get(key) ?? begin(kind, name);
      watched.set(key, one);
      one.listeners.add(listener);
      if (one.values !== undefined) listener(one.values);
      return () => {
        one.listeners.delete(listener);
        if (one.listeners.size > 0 || watched.get(key) !== one) return;
        watched.delete(key);
        one.end();
      };
    },
  };
}

function valuesOf(kind: VolumeFile['kind'], object: ValuesObject | undefined): ObjectValues {
  const decoded = (values: ValuesObject['data'], encoding: BufferEncoding): [string, Buffer][] =>
    Object.entries(values ?? {}).map(([key, value]) => [key, Buffer.from(value, encoding)]);
  return Object.fromEntries([
    ...decoded(object?.data, kind === 'secret' ? 'base64' : 'utf8'),
    ...decoded(object?.binaryData, 'base64'),
  ]);
}

// A credential that the broker holds, and who may have its tokens.

export interface BrokerCredential {
  /** `profile/credential`, as in the request's path. */
  readonly name: string;
  /** Its paths lie in `volumes`. */
  readonly config: CredentialConfig;
  readonly volumes: readonly Volume[];
}

/** From the broker's own namespace. */
interface Volume {
  readonly directory: string;
  readonly files: readonly VolumeFile[];
}

export interface VolumeFile {
  readonly kind: 'secret' | 'configMap';
  readonly name: string;
  readonly key: string;
  readonly path: string;
}

export interface BrokeredCredentials {
  /** Why nothing can be said now; undefined once all profiles have been read. */
  unread(): string | undefined;
  /**
   * @returns undefined if it does not exist or is not for this caller, who must not learn the difference. Otherwise one object
   * until the profile changes.
   */
  find(profile: string, credential: string, caller: ServiceAccountCaller): BrokerCredential | undefined;
  /** Undefined if the profile no longer mentions it. */
  now(name: string): BrokerCredential | undefined;
}

export function isSame(one: BrokerCredential, other: BrokerCredential): boolean {
  return isDeepStrictEqual([one.config, one.volumes], [other.config, other.volumes]);
}
