/**
 * Looks for pods that asked for the sidecar and lack it, as after an outage of the webhook, and for those whose sidecar
 * gets no token: counts them, tells their owners, and evicts the former where that is asked for. One replica does it.
 */

import { messageOf } from '../../errors.ts';
import type { Logger } from '../../log/logger.ts';
import { contendForLeadership } from '../certificate/leadership.ts';
import { createAllowance } from '../kubernetes/allowance.ts';
import { type KubernetesApi, KubernetesApiError, statusOf } from '../kubernetes/api.ts';
import type { BackoffOptions } from '../kubernetes/backoff.ts';
import { watchCollection } from '../kubernetes/collection-watch.ts';
import type { Finding, Subject, TellEvent } from '../kubernetes/events.ts';
import type { InjectorMetrics } from '../metrics.ts';
import { hasSidecar } from '../pod/inject.ts';
import { controllerOf } from '../pod/pod.ts';
import { createHealing } from './healing.ts';
import type { Served } from './served-pods.ts';
import { lacksSidecar, tokenFailure, type WatchedPod } from './watched-pod.ts';

export interface PodControllerOptions extends BackoffOptions {
  readonly namespace: string;
  /** Of the Lease whose holder does the work. */
  readonly leaseName: string;
  readonly identity: string;
  /** Whether pods without their sidecar are evicted. */
  readonly heals: boolean;
  /** Absent when Events are switched off. */
  readonly tell?: TellEvent;
  readonly served: (pod: WatchedPod) => Promise<Served>;
  readonly metrics: Pick<InjectorMetrics, 'podsWithoutSidecar' | 'evicted'>;
  readonly log: Logger;
}

const PODS = '/api/v1/pods';
/** As many at a time, so that a large cluster's pods are never in memory together. */
const QUERY = { fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed', limit: 200 };
const LOOK_EVERY_MS = 5000;
/** Of either kind. More are not looked at one by one. */
const MOST_KEPT = 5000;
const TELLINGS_AT_ONCE = 50;
const TELLINGS_PER_SECOND = 5;
/** Unless a PodDisruptionBudget says how long. */
const BLOCKED_FOR_MS = 30_000;

interface Kept {
  readonly pod: WatchedPod;
  /** What the sidecar said; undefined where there is none. */
  readonly failure: string | undefined;
  isTold: boolean;
}

export function startPodController(
  api: KubernetesApi,
  options: PodControllerOptions,
): { close(): Promise<void> } {
  const { clock, log, metrics, tell, served } = options;
  const healing = createHealing();
  const tellings = createAllowance(clock, TELLINGS_AT_ONCE, TELLINGS_PER_SECOND);
  /** By uid: pods that lack the sidecar, and pods whose sidecar gets no token. */
  const kept = new Map<string, Kept>();
  let isListing = false;
  let unwatch: (() => void) | undefined;
  let cancelTimer: (() => void) | undefined;
  let looking: Promise<void> | undefined;
  let closed = false;

  const leadership = contendForLeadership(api, { ...options, name: options.leaseName }, () => {
    unwatch ??= watchCollection<WatchedPod>(api, PODS, QUERY, options, {
      begun() {
        isListing = true;
        kept.clear();
      },
      listed() {
        isListing = false;
      },
      seen,
      gone: ({ metadata }) => void kept.delete(metadata.uid),
    });
  });

  function seen(pod: WatchedPod, isNew: boolean): void {
    const { uid } = pod.metadata;
    const owner = controllerOf(pod);
    if (isNew && owner !== undefined) healing.appeared(owner.uid, hasSidecar(pod), clock.monotonicMs());
    const failure = tokenFailure(pod);
    if (failure === undefined && !lacksSidecar(pod)) {
      kept.delete(uid);
      return;
    }
    if (kept.size >= MOST_KEPT && !kept.has(uid)) return;
    kept.set(uid, { pod, failure, isTold: kept.get(uid)?.isTold ?? false });
  }

  function look(): void {
    cancelTimer = clock.after(LOOK_EVERY_MS, look);
    if (!leadership.held()) {
      unwatch?.();
      unwatch = undefined;
      kept.clear();
      metrics.podsWithoutSidecar(0);
    } else if (!isListing) {
      looking ??= lookAtAll()
        .catch((error: unknown) => log.error({ err: messageOf(error) }, 'pods not looked at'))
        .finally(() => {
          looking = undefined;
        });
    }
  }

  async function lookAtAll(): Promise<void> {
    const lacking: WatchedPod[] = [];
    let count = 0;
    for (const one of [...kept.values()]) {
      if (closed || !leadership.held()) return;
      if (one.failure !== undefined) {
        await say(one, { reason: 'TokenSidecarNoToken', message: noToken(one.pod, one.failure) });
        continue;
      }
      const verdict = await served(one.pod);
      if (verdict === 'disabled') continue;
      if (verdict !== 'not_served') count++;
      if (verdict === 'served') lacking.push(one.pod);
      await say(one, { reason: 'TokenSidecarNotInjected', message: notInjected(one.pod, verdict) });
    }
    metrics.podsWithoutSidecar(count);
    if (options.heals) await heal(lacking);
  }

  async function say(one: Kept, finding: Finding): Promise<void> {
    if (tell === undefined || one.isTold || !tellings.take()) return;
    one.isTold = true;
    const { metadata } = one.pod;
    try {
      // Of one owner's pods one is named: the others are like it.
      await tell(subjectOf(one.pod), metadata.namespace, finding, finding.reason);
    } catch (error) {
      log.warn({ err: error, namespace: metadata.namespace, pod: metadata.name }, 'Event not made');
    }
  }

  async function heal(lacking: readonly WatchedPod[]): Promise<void> {
    const pod = healing.next(lacking, clock.monotonicMs());
    if (pod === undefined || closed) return;
    const { name, namespace, uid } = pod.metadata;
    // Before the request: the replacement may be seen before its answer.
    healing.evicted(pod, clock.monotonicMs());
    try {
      await api.request(
        'POST',
        `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/eviction`,
        {
          body: {
            apiVersion: 'policy/v1',
            kind: 'Eviction',
            metadata: { name, namespace },
            deleteOptions: { preconditions: { uid } },
          },
        },
      );
      metrics.evicted('evicted');
      log.warn({ namespace, pod: name }, 'pod without its sidecar evicted, so that it is made anew');
    } catch (error) {
      const isBlocked = statusOf(error) === 429;
      metrics.evicted(isBlocked ? 'blocked' : 'failed');
      const asked = error instanceof KubernetesApiError ? error.retryAfterMs : undefined;
      healing.postponed(pod, Math.max(asked ?? 0, BLOCKED_FOR_MS), clock.monotonicMs());
      log[isBlocked ? 'info' : 'warn']({ err: error, namespace, pod: name }, 'pod not evicted');
    }
  }

  look();
  return {
    async close() {
      closed = true;
      cancelTimer?.();
      unwatch?.();
      await looking;
      await leadership.close();
    },
  };
}

/** Whoever makes the pod, or the pod itself. */
function subjectOf(pod: WatchedPod): Subject {
  const { name, uid } = pod.metadata;
  return controllerOf(pod) ?? { apiVersion: 'v1', kind: 'Pod', name, uid };
}

function noToken({ metadata }: WatchedPod, failure: string): string {
  return `the sidecar of pod ${metadata.name} gets no token: ${failure}`;
}

function notInjected({ metadata }: WatchedPod, verdict: Served): string {
  const { name, namespace } = metadata;
  const asks = `pod ${name} asks for the sidecar and was made without it`;
  return verdict === 'not_served'
    ? `${asks}: the injector does not serve it, by the selectors of its webhook for namespaces and pods; see the namespace ${namespace} and its labels`
    : `${asks}: the injector did not answer then; make the pod anew, as by kubectl rollout restart`;
}
