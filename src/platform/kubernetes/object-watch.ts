/** One object of the API as a live value: a collection of which one name is watched. */

import type { ApiObject, KubernetesApi } from './api.ts';
import { type CollectionWatchOptions, watchCollection } from './collection-watch.ts';

type ObjectWatchOptions = CollectionWatchOptions;

/**
 * Calls back with the object now and after each change; with undefined while it does not exist. Never gives up.
 * @param path of the collection.
 * @returns a function that stops it.
 */
export function watchObject<T extends ApiObject>(
  api: KubernetesApi,
  path: string,
  name: string,
  options: ObjectWatchOptions,
  onObject: (object: T | undefined) => void,
): () => void {
  let isListing = false;
  let found: T | undefined;
  return watchCollection<T>(api, path, { fieldSelector: `metadata.name=${name}` }, options, {
    begun() {
      isListing = true;
      found = undefined;
    },
    listed() {
      isListing = false;
      onObject(found);
    },
    seen(object) {
      if (object.metadata.name !== name) return;
      if (isListing) found = object;
      else onObject(object);
    },
    gone(object) {
      if (object.metadata.name === name) onObject(undefined);
    },
  });
}
