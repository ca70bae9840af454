/** Secrets and ConfigMaps of one namespace, each watched by name while needed. */

import type { ApiObject, KubernetesApi } from '../platform/kubernetes/api.ts';
import { type CollectionWatchOptions, watchObject } from '../platform/kubernetes/collection-watch.ts';
import type { VolumeFile } from './brokered-credential.ts';

/** Values by key; empty if the object does not exist. */
export type ObjectValues = Readonly<Record<string, Buffer>>;

export interface WatchedObjects {
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
  options: CollectionWatchOptions,
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
