/** Work for one of several replicas: its leader watches a collection, and every few seconds acts on what it has seen. */

import { messageOf } from '../errors.ts';
import type { ApiObject, KubernetesApi, Query } from './api.ts';
import { type CollectionListener, watchCollection } from './collection-watch.ts';
import { contendForLeadership, type LeadershipOptions } from './leadership.ts';

const LOOK_EVERY_MS = 5000;

interface LeaderWork<T> extends Pick<CollectionListener<T>, 'seen' | 'gone'> {
  /** Path of the collection, and a selection from it. */
  readonly path: string;
  readonly query: Query;
  /** This replica has become the leader, or has found that it is again. */
  elected?(): void;
  /** Everything seen must be forgotten: it will be reported again, or this replica is not the leader. */
  forget(): void;
  /** At this look, the replica is not the leader. */
  idle?(): void;
  /** Called once the whole collection has been seen, and the look before has ended. */
  look(): Promise<void>;
  /** The log message for a failed look. */
  readonly failure: string;
}

interface LeaderWatch {
  /** Whether this replica is still the leader: to be checked before each step that takes effect. */
  leads(): boolean;
  /** Resolves once the look under way has ended and the Lease is given up. */
  close(): Promise<void>;
}

export function watchAsLeader<T extends ApiObject>(
  api: KubernetesApi,
  options: LeadershipOptions,
  work: LeaderWork<T>,
): LeaderWatch {
  const { clock, log } = options;
  let isListed = false;
  let unwatch: (() => void) | undefined;
  let cancelTimer: (() => void) | undefined;
  let looking: Promise<void> | undefined;
  let closed = false;

  const leadership = contendForLeadership(api, options, elected);

  function elected(): void {
    if (closed) return;
    work.elected?.();
    unwatch ??= watchCollection<T>(api, work.path, work.query, options, {
      begun() {
        isListed = false;
        work.forget();
      },
      seen: (object, isNew) => work.seen(object, isNew),
      gone: (object) => work.gone(object),
      listed() {
        isListed = true;
      },
    });
  }

  function lookInTime(): void {
    cancelTimer = clock.after(LOOK_EVERY_MS, lookInTime);
    if (!leadership.held()) {
      unwatch?.();
      unwatch = undefined;
      isListed = false;
      work.forget();
      work.idle?.();
      return;
    }
    // Between two looks leadership may have been lost and regained.
    if (unwatch === undefined) elected();
    if (!isListed) return;
    looking ??= work
      .look()
      .catch((error: unknown) => log.error({ err: messageOf(error) }, work.failure))
      .finally(() => {
        looking = undefined;
      });
  }

  lookInTime();
  return {
    leads: () => !closed && leadership.held(),
    async close() {
      closed = true;
      cancelTimer?.();
      unwatch?.();
      await looking;
      await leadership.close();
    },
  };
}
