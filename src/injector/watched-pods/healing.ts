/**
 * Which pod without its sidecar is evicted next, so that its owner makes it anew. One at a time in the whole cluster:
 * the pod that comes in its place shows whether healing helps, before another one is touched. Where it does not, the
 * owner is given up, and everybody else is left alone for a while.
 */

import { controllerOf } from '../pod/pod.ts';
import type { WatchedPod } from './watched-pod.ts';

export interface Healing {
  /** The pod to evict now, if any. */
  next(candidates: Iterable<WatchedPod>, nowMs: number): WatchedPod | undefined;
  /** It is being evicted. */
  evicted(pod: WatchedPod, nowMs: number): void;
  /** This replica has become the leader: one before it may have evicted a pod whose replacement is still to come. */
  elected(nowMs: number): void;
  /** Nothing was evicted, for certain: the owner's turn comes again. */
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
const BACKOFF_MS = 60_000;
const LONGEST_BACKOFF_MS = 1_800_000;
const MOST_OWNERS = 1000;

/**
 * Times are of a clock that never steps.
 * @param onGivenUp told of the pod whose eviction did not help.
 */
export function createHealing(onGivenUp: (pod: WatchedPod) => void = () => {}): Healing {
  /** By uid: when the turn of an owner comes. */
  const owners = new Map<string, number>();
  /** Nobody in it is forgotten: when it is full, nothing is evicted any more. */
  const givenUp = new Set<string>();
  let waiting: { readonly pod: WatchedPod; readonly owner: string; readonly untilMs: number } | undefined;
  let notBeforeMs = 0;
  let failuresInARow = 0;

  function remember(uid: string, untilMs: number): void {
    owners.delete(uid);
    if (owners.size >= MOST_OWNERS) owners.delete(owners.keys().next().value as string);
    owners.set(uid, untilMs);
  }

  function fail(pod: WatchedPod, uid: string, nowMs: number): void {
    givenUp.add(uid);
    owners.delete(uid);
    onGivenUp(pod);
    notBeforeMs = nowMs + Math.min(LONGEST_BACKOFF_MS, BACKOFF_MS * 2 ** failuresInARow);
    failuresInARow++;
  }

  return {
    next(candidates, nowMs) {
      if (waiting !== undefined) {
        if (nowMs < waiting.untilMs) return undefined;
        const { pod, owner } = waiting;
        waiting = undefined;
        fail(pod, owner, nowMs);
      }
      if (nowMs < notBeforeMs || givenUp.size >= MOST_OWNERS) return undefined;
      for (const pod of candidates) {
        const owner = controllerOf(pod);
        if (owner === undefined || !REPLACING.includes(`${owner.apiVersion} ${owner.kind}`)) continue;
        if (!givenUp.has(owner.uid) && nowMs >= (owners.get(owner.uid) ?? 0)) return pod;
      }
      return undefined;
    },
    elected(nowMs) {
      waiting = undefined;
      notBeforeMs = Math.max(notBeforeMs, nowMs + REPLACED_WITHIN_MS);
    },
    evicted(pod, nowMs) {
      const owner = controllerOf(pod)?.uid ?? '';
      waiting = { pod, owner, untilMs: nowMs + REPLACED_WITHIN_MS };
    },
    postponed(pod, delayMs, nowMs) {
      const uid = controllerOf(pod)?.uid ?? '';
      waiting = undefined;
      remember(uid, nowMs + delayMs);
      notBeforeMs = nowMs + APART_MS;
    },
    appeared(owner, hasSidecar, nowMs) {
      if (waiting?.owner !== owner) return;
      const { pod } = waiting;
      waiting = undefined;
      if (!hasSidecar) return fail(pod, owner, nowMs);
      owners.delete(owner);
      failuresInARow = 0;
      notBeforeMs = nowMs + APART_MS;
    },
  };
}
