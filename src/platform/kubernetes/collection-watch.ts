/** Lists a collection by pages, then watches it; both again after a failure. */

import { messageOf } from '../errors.ts';
import type { Logger } from '../log/logger.ts';
import { type BackoffOptions, backoffMs, sleep } from '../time/async.ts';
import { type ApiObject, type KubernetesApi, KubernetesApiError, type Query, statusOf } from './api.ts';

interface ApiObjectList<T extends ApiObject> {
  readonly metadata: {
    readonly resourceVersion?: string;
    readonly continue?: string;
  };
  readonly items: readonly T[];
}

interface CollectionWatchOptions extends BackoffOptions {
  readonly log: Logger;
}

/** In this order: `begun`, `seen` for each object, `listed`, then changes. */
export interface CollectionListener<T> {
  begun?(): void;
  /** @param isNew created while it was watched. */
  seen(object: T, isNew: boolean): void;
  gone(object: T): void;
  listed?(): void;
  /** It is retried. */
  failed?(error: unknown): void;
}

/** A shorter stream is not reopened at once. */
const MIN_MS = 1000;

/** The version is forgotten (410), or the collection missing (404). */
const LISTED_ANEW: readonly (number | undefined)[] = [404, 410];

/**
 * Never gives up. A stream that the server ends is resumed; after 404 and 410 the collection is listed again; other
 * failures are retried after the server's or a growing time.
 * @param query with `limit`, it is listed in pages.
 * @returns a function that stops it.
 */
export function watchCollection<T extends ApiObject>(
  api: KubernetesApi,
  path: string,
  query: Query,
  options: CollectionWatchOptions,
  listener: CollectionListener<T>,
): () => void {
  const { clock, random, log } = options;
  const abort = new AbortController();
  const { signal } = abort;
  const { limit: _, ...selection } = query;
  /** Empty if the collection must be listed first. */
  let version = '';
  let failures = 0;

  async function list(): Promise<void> {
    listener.begun?.();
    let next = '';
    let listedAt = '';
    do {
      const from = next === '' ? {} : { continue: next };
      const { metadata, items } = await api.request<ApiObjectList<T>>('GET', path, {
        query: { ...query, ...from },
      });
      if (signal.aborted) return;
      for (const item of items) listener.seen(item, false);
      next = metadata.continue ?? '';
      listedAt = metadata.resourceVersion ?? '';
    } while (next !== '');
    version = listedAt;
    listener.listed?.();
  }

  async function stream(): Promise<void> {
    const since = { ...selection, resourceVersion: version, allowWatchBookmarks: true };
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
        if (signal.aborted || type === 'BOOKMARK') return;
        if (type === 'DELETED') listener.gone(changed);
        else listener.seen(changed, type === 'ADDED');
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
        if (clock.now().monotonicMs - startedAt >= MIN_MS) failures = 0;
        else await sleep(clock, backoffMs(++failures, random), signal);
      } catch (error) {
        if (signal.aborted) return;
        if (LISTED_ANEW.includes(statusOf(error))) version = '';
        failures++;
        const asked = error instanceof KubernetesApiError ? error.retryAfterMs : undefined;
        const delayMs = asked ?? backoffMs(failures, random);
        log.warn({ err: error, failures, retryInMs: Math.round(delayMs) }, 'watch broke off');
        listener.failed?.(error);
        await sleep(clock, delayMs, signal);
      }
    }
  }

  run().catch((error: unknown) => log.error({ err: messageOf(error) }, 'watch ended'));
  return () => abort.abort();
}

type ObjectWatchOptions = CollectionWatchOptions;

/**
 * Calls back now and after each change; with undefined while the object does not exist. Never gives up.
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
