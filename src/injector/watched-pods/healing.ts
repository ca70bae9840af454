/**
 * Which pod without its sidecar is evicted next, so that its owner makes it anew. One at a time in the whole cluster:
 * the pod that comes in its place shows whether healing helps, before another one is touched. Where it does not, the
 * owner is left alone for an hour, then for two, four, … up to a day, and everybody else for a while as well.
 */

import { controllerOf } from '../pod/pod.ts';
import type { WatchedPod } from './watched-pod.ts';

export interface Healing {
  /** The pod to evict now, if any. */
  next(candidates: Iterable<WatchedPod>, nowMs: number): WatchedPod | undefined;
  /** It is being evicted. */
  evicted(pod: WatchedPod, nowMs: number): void;
  /** A PodDisruptionBudget says to wait, or the eviction failed: the owner's turn comes again. */
  postponed(pod: WatchedPod, delayMs: number, nowMs: number): void;
  /** A new pod of an owner has been made. */
  appeared(owner: string, hasSidecar: boolean, nowMs: number): void;
}

/** What makes a pod anew that is evicted. A Job's pod would lose its work, a pod of its own would be gone. */
const REPLACING: readonly string[] = [
  'apps/v1 ReplicaSet',
  'apps/v1 StatefulSet',
  'apps/v1 DaemonSet',
  'v1 ReplicationController',
];

const APART_MS = 5000;
/** A replacement that has not come by then is refused, or cannot be made. */
const REPLACED_WITHIN_MS = 300_000;
const OWNER_BACKOFF_MS = 3_600_000;
const LONGEST_OWNER_BACKOFF_MS = 24 * 3_600_000;
const BACKOFF_MS = 60_000;
const LONGEST_BACKOFF_MS = 1_800_000;
const MOST_OWNERS = 1000;

interface Owner {
  readonly notBeforeMs: number;
  readonly failures: number;
}

/** Times are of a clock that never steps. */
export function createHealing(): Healing {
  const owners = new Map<string, Owner>();
  let waiting: { readonly owner: string; readonly untilMs: number } | undefined;
  let notBeforeMs = 0;
  let failuresInARow = 0;

  function remember(uid: string, owner: Owner): void {
    owners.delete(uid);
    if (owners.size >= MOST_OWNERS) owners.delete(owners.keys().next().value as string);
    owners.set(uid, owner);
  }

  function fail(uid: string, nowMs: number): void {
    const failures = (owners.get(uid)?.failures ?? 0) + 1;
    const ownerMs = Math.min(LONGEST_OWNER_BACKOFF_MS, OWNER_BACKOFF_MS * 2 ** (failures - 1));
    remember(uid, { notBeforeMs: nowMs + ownerMs, failures });
    notBeforeMs = nowMs + Math.min(LONGEST_BACKOFF_MS, BACKOFF_MS * 2 ** failuresInARow);
    failuresInARow++;
  }

  return {
    next(candidates, nowMs) {
      if (waiting !== undefined) {
        if (nowMs < waiting.untilMs) return undefined;
        const { owner } = waiting;
        waiting = undefined;
        fail(owner, nowMs);
      }
      if (nowMs < notBeforeMs) return undefined;
      for (const pod of candidates) {
        const owner = controllerOf(pod);
        if (owner === undefined || !REPLACING.includes(`${owner.apiVersion} ${owner.kind}`)) continue;
        if (nowMs >= (owners.get(owner.uid)?.notBeforeMs ?? 0)) return pod;
      }
      return undefined;
    },
    evicted(pod, nowMs) {
      const owner = controllerOf(pod)?.uid ?? '';
      waiting = { owner, untilMs: nowMs + REPLACED_WITHIN_MS };
    },
    postponed(pod, delayMs, nowMs) {
      const uid = controllerOf(pod)?.uid ?? '';
      waiting = undefined;
      remember(uid, { notBeforeMs: nowMs + delayMs, failures: owners.get(uid)?.failures ?? 0 });
      notBeforeMs = nowMs + APART_MS;
    },
    appeared(owner, hasSidecar, nowMs) {
      if (waiting?.owner !== owner) return;
      waiting = undefined;
      if (!hasSidecar) return fail(owner, nowMs);
      owners.delete(owner);
      failuresInARow = 0;
      notBeforeMs = nowMs + APART_MS;
    },
  };
}
