/** One object of the API as a live value: listed, then watched, and both again after whatever failure. */

import { messageOf } from '../../errors.ts';
import type { Logger } from '../../log/logger.ts';
import {
  type ApiObject,
  type ApiObjectList,
  type KubernetesApi,
  KubernetesApiError,
  statusOf,
} from './api.ts';
import { type BackoffOptions, backoffMs, pause } from './backoff.ts';

export interface ObjectWatchOptions extends BackoffOptions {
  readonly log: Logger;
}

/** A stream that lives shorter than this ended too soon to be opened again at once. */
const SHORTEST_MS = 1000;

const GONE = 410;

/**
 * Calls back with the object as it is and after each change; with undefined while it does not exist. Never gives up:
 * a stream that the server ends is opened again where it ended, a version that the server has forgotten (410) is
 * listed anew, and anything else is tried again after a while, as long as the server asked for or a growing time.
 * @param path of the collection.
 * @returns a function that ends it.
 */
export function watchObject<T extends ApiObject>(
  api: KubernetesApi,
  path: string,
  name: string,
  options: ObjectWatchOptions,
  onObject: (object: T | undefined) => void,
): () => void {
  const { clock, random, log } = options;
  const abort = new AbortController();
  const { signal } = abort;
  const query = { fieldSelector: `metadata.name=${name}` };
  /** Where the stream goes on; empty when the object must be listed first. */
  let version = '';
  let failures = 0;

  async function list(): Promise<void> {
    const { metadata, items } = await api.request<ApiObjectList<T>>('GET', path, { query });
    if (signal.aborted) return;
    version = metadata.resourceVersion ?? '';
    onObject(items.find((item) => item.metadata.name === name));
  }

  async function stream(): Promise<void> {
    const since = { ...query, resourceVersion: version, allowWatchBookmarks: true };
    let expired: KubernetesApiError | undefined;
    await api.watch(
      path,
      since,
      ({ type, object }) => {
        if (type === 'ERROR') {
          const { code, message } = object as { code?: number; message?: string };
          expired = new KubernetesApiError(`WATCH ${path}: ${message ?? 'an error event'}`, code);
          return;
        }
        failures = 0;
        const changed = object as T;
        version = changed.metadata.resourceVersion ?? version;
        if (changed.metadata.name === name && type !== 'BOOKMARK') {
          onObject(type === 'DELETED' ? undefined : changed);
        }
      },
      signal,
    );
    if (expired !== undefined) throw expired;
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const startedAt = clock.now().monotonicMs;
      try {
        if (version === '') await list();
        await stream();
        if (clock.now().monotonicMs - startedAt >= SHORTEST_MS) failures = 0;
        else await pause(clock, backoffMs(++failures, random), signal);
      } catch (error) {
        if (signal.aborted) return;
        if (statusOf(error) === GONE) version = '';
        failures++;
        const asked = error instanceof KubernetesApiError ? error.retryAfterMs : undefined;
        const delayMs = asked ?? backoffMs(failures, random);
        log.warn({ err: error, failures, retryInMs: Math.round(delayMs) }, 'watch broke off');
        await pause(clock, delayMs, signal);
      }
    }
  }

  run().catch((error: unknown) => log.error({ err: messageOf(error) }, 'watch ended'));
  return () => abort.abort();
}
