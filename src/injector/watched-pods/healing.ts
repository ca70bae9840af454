/**
 * Which pod is evicted next, so that its owner replaces it with a sidecar. One at a time in the cluster: if that does not help, the
 * owner is given up, and all others wait.
 */

import type { ApiObject, KubernetesApi } from '../../platform/kubernetes/api.ts';
import { LruMap } from '../../platform/limits/lru-map.ts';
import { doublingMs } from '../../platform/time/async.ts';
import { ownerPath, readOwner } from '../cluster/owner-events.ts';
import { LABEL } from '../pod/annotations.ts';
import type { Injection } from '../pod/inject.ts';
import { controllerOf, type Namespace, type Pod } from '../pod/pod.ts';
import { whyUnanswered } from '../webhook-check.ts';
import type { WatchedPod } from './watched-pod.ts';

interface Healing {
  next(candidates: Iterable<WatchedPod>, nowMs: number): WatchedPod | undefined;
  evicted(pod: WatchedPod, nowMs: number): void;
  /** The former leader may have evicted a pod. */
  elected(nowMs: number): void;
  /** Certainly nothing was evicted. */
  postponed(pod: WatchedPod, delayMs: number, nowMs: number): void;
  appeared(owner: string, hasSidecar: boolean, nowMs: number): void;
}

/** A Job's pod would lose its work, and a bare pod would be gone. */
const REPLACING: readonly string[] = [
  'apps/v1 ReplicaSet',
  'apps/v1 StatefulSet',
  'apps/v1 DaemonSet',
  'v1 ReplicationController',
];

const MIN_EVICTION_INTERVAL_MS = 5000;
/** After that, it has been refused or cannot be made. */
const REPLACED_WITHIN_MS = 300_000;
const BACKOFF = { firstMs: 60_000, maxMs: 1_800_000 };
const MAX_OWNERS = 1000;

/**
 * Times are monotonic.
 * @param onGivenUp called with a pod whose eviction did not help.
 */
export function createHealing(onGivenUp: (pod: WatchedPod) => void = () => {}): Healing {
  /** By uid: when an owner gets its turn. */
  const owners = new LruMap<string, number>({ max: MAX_OWNERS });
  /** Forgets no owner: once it is full, nothing is evicted. */
  const givenUp = new Set<string>();
  let waiting: { readonly pod: WatchedPod; readonly owner: string; readonly untilMs: number } | undefined;
  let notBeforeMs = 0;
  let failuresInARow = 0;

  function fail(pod: WatchedPod, uid: string, nowMs: number): void {
    givenUp.add(uid);
    owners.delete(uid);
    onGivenUp(pod);
    notBeforeMs = nowMs + doublingMs(failuresInARow++, BACKOFF);
  }

  return {
    next(candidates, nowMs) {
      if (waiting !== undefined) {
        if (nowMs < waiting.untilMs) return undefined;
        const { pod, owner } = waiting;
        waiting = undefined;
        fail(pod, owner, nowMs);
      }
      if (nowMs < notBeforeMs || givenUp.size >= MAX_OWNERS) return undefined;
      for (const pod of candidates) {
        const owner = controllerOf(pod);
        if (owner === undefined || !REPLACING.includes(`${owner.apiVersion} ${owner.kind}`)) continue;
        if (!givenUp.has(owner.uid) && nowMs >= (owners.peek(owner.uid) ?? 0)) return pod;
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
      owners.set(uid, nowMs + delayMs);
      notBeforeMs = nowMs + MIN_EVICTION_INTERVAL_MS;
    },
    appeared(owner, hasSidecar, nowMs) {
      if (waiting?.owner !== owner) return;
      const { pod } = waiting;
      waiting = undefined;
      if (!hasSidecar) return fail(pod, owner, nowMs);
      owners.delete(owner);
      failuresInARow = 0;
      notBeforeMs = nowMs + MIN_EVICTION_INTERVAL_MS;
    },
  };
}

export interface Replacements {
  /**
   * Why a replacement would have no sidecar; undefined if it would, or if unknown.
   * @throws {KubernetesApiError}
   */
  obstacle(pod: WatchedPod): Promise<string | undefined>;
  /** Why the pod must not be evicted now. @throws {KubernetesApiError} */
  refusal(pod: WatchedPod): Promise<string | undefined>;
}

interface ReplacementOptions {
  /** The release's, in which the webhook is tried. */
  readonly namespace: string;
  readonly verdictOf: (pod: Pod, namespace: Namespace) => Injection;
}

interface LabelledNamespace extends ApiObject {
  readonly metadata: ApiObject['metadata'] & { readonly labels?: Readonly<Record<string, string>> };
}

const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

export function createReplacements(
  api: KubernetesApi,
  { namespace: own, verdictOf }: ReplacementOptions,
): Replacements {
  async function verdict(pod: WatchedPod, namespace: Namespace): Promise<Injection | undefined> {
    const owner = controllerOf(pod);
    const path = owner && ownerPath(owner, namespace.name);
    const workload = path === undefined ? undefined : await readOwner(api, path);
    if (workload === undefined || workload.metadata.uid !== owner?.uid) return undefined;
    return verdictOf(workload.spec?.template ?? {}, namespace);
  }

  return {
    async obstacle(pod) {
      const found = await verdict(pod, { name: pod.metadata.namespace });
      return found === undefined ? undefined : obstacleIn(found);
    },
    async refusal(pod) {
      const { namespace: name } = pod.metadata;
      const { metadata } = await api.request<LabelledNamespace>(
        'GET',
        `/api/v1/namespaces/${encodeURIComponent(name)}`,
        { accept: METADATA_ONLY },
      );
      const { labels = {} } = metadata;
      if (labels[LABEL.namespace] === 'disabled') return `the namespace ${name} is switched off`;
      const found = await verdict(pod, { name, labels });
      if (found === undefined) return 'its owner is not there';
      const obstacle = obstacleIn(found);
      if (obstacle !== undefined) return obstacle;
      const why = await whyUnanswered(api, own);
      return why === undefined ? undefined : `the webhook does not answer: ${why}`;
    },
  };
}

function obstacleIn(found: Injection): string | undefined {
  if (found.result === 'injected') return undefined;
  if (found.result === 'rejected') return `a pod of its template is refused: ${found.message}`;
  return found.reason === 'not_requested'
    ? 'the pod template of its owner does not ask: put the annotation there'
    : `a pod of its template is skipped: ${found.warnings.join('; ') || found.reason}`;
}
