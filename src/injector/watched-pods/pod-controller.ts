/**
 * Counts pods that lack their sidecar or whose sidecar gets no token, tells their owners, and may evict the former. One replica
 * does this.
 */

import { messageOf } from '../../platform/errors.ts';
import {
  type ApiObject,
  type KubernetesApi,
  KubernetesApiError,
  type OwnerReference,
  statusOf,
} from '../../platform/kubernetes/api.ts';
import { type LeadershipOptions, watchAsLeader } from '../../platform/kubernetes/leadership.ts';
import { LruMap } from '../../platform/limits/lru-map.ts';
import { TokenBucket } from '../../platform/limits/token-bucket.ts';
import type { Logger } from '../../platform/log/logger.ts';
import type { BackoffOptions } from '../../platform/time/async.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { RecordEvent } from '../cluster/owner-events.ts';
import { type LabelSelector, selects } from '../label-selector.ts';
import type { InjectorMetrics } from '../metrics.ts';
import { LABEL } from '../pod/annotations.ts';
import { hasSidecar, SYSTEM_NAMESPACES } from '../pod/inject.ts';
import { controllerOf } from '../pod/pod.ts';
import { createHealing, type Replacements } from './healing.ts';
import { lacksSidecar, reduced, tokenFailure, type WatchedPod } from './watched-pod.ts';

interface PodControllerOptions extends BackoffOptions {
  readonly namespace: string;
  /** Its holder does the work. */
  readonly leaseName: string;
  readonly identity: string;
  readonly heals: boolean;
  readonly tell?: RecordEvent;
  readonly served: () => ServedPass;
  readonly replacements: Replacements;
  /** A Lease made here is deleted with it. */
  readonly owner?: NonNullable<LeadershipOptions['owner']>;
  readonly metrics: Pick<InjectorMetrics, 'podsWithoutSidecar' | 'evicted'>;
  readonly log: Logger;
}

const PODS = '/api/v1/pods';
/** A pod may have 1.5 MiB, and takes sevenfold while decoded. */
const QUERY = { fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed', limit: 10 };
/** Further pods are not examined. */
const MAX_KEPT = 5000;
const TELLINGS = { burst: 50, perSecond: 5 };
/** Unless a PodDisruptionBudget says how long. */
const BLOCKED_FOR_MS = 30_000;
const REFUSED_FOR_MS = 300_000;

interface Kept {
  readonly pod: WatchedPod;
  readonly failure: string | undefined;
  told: string | undefined;
}

export function startPodController(
  api: KubernetesApi,
  options: PodControllerOptions,
): { close(): Promise<void> } {
  const { clock, log, metrics, tell, replacements } = options;
  /** Their owners have yet to be told. */
  const givenUp: WatchedPod[] = [];
  const healing = createHealing((pod) => givenUp.push(pod));
  const tellings = new TokenBucket(TELLINGS);
  const kept = new Map<string, Kept>();

  const watch = watchAsLeader<WatchedPod>(
    api,
    { ...options, name: options.leaseName },
    {
      path: PODS,
      query: QUERY,
      elected: () => healing.elected(clock.monotonicMs()),
      seen,
      gone: ({ metadata }) => void kept.delete(metadata.uid),
      forget: () => kept.clear(),
      idle: () => metrics.podsWithoutSidecar(0),
      look: lookAtAll,
      failure: 'pods not looked at',
    },
  );

  function seen(pod: WatchedPod, isNew: boolean): void {
    const { uid } = pod.metadata;
    const owner = controllerOf(pod);
    if (isNew && owner !== undefined) healing.appeared(owner.uid, hasSidecar(pod), clock.monotonicMs());
    const failure = tokenFailure(pod);
    if (failure === undefined && !lacksSidecar(pod)) {
      kept.delete(uid);
      return;
    }
    if (kept.size >= MAX_KEPT && !kept.has(uid)) return;
    kept.set(uid, { pod: reduced(pod), failure, told: kept.get(uid)?.told });
  }

  async function lookAtAll(): Promise<void> {
    const lacking: WatchedPod[] = [];
    const pass = options.served();
    const say = teller();
    let count = 0;
    for (const one of [...kept.values()]) {
      if (!watch.leads()) return;
      if (one.failure !== undefined) {
        const { failure } = one;
        await say(one, failure, async () => ({
          reason: 'TokenSidecarNoToken',
          message: noToken(one.pod, failure),
        }));
        continue;
      }
      const verdict = await pass.of(one.pod);
      if (verdict === 'disabled' || verdict === 'unread') continue;
      if (verdict !== 'not_served') count++;
      if (verdict === 'served') lacking.push(one.pod);
      await say(one, verdict, async () => ({
        reason: 'TokenSidecarNotInjected',
        message: notInjected(
          one.pod,
          verdict,
          verdict === 'served' ? await replacements.obstacle(one.pod) : undefined,
        ),
      }));
    }
    pass.end();
    metrics.podsWithoutSidecar(count);
    if (!options.heals) return;
    await heal(lacking);
    const [pod] = givenUp;
    if (pod === undefined) return;
    const one: Kept = { pod, failure: undefined, told: undefined };
    await say(one, 'given up', async () => ({ reason: 'TokenSidecarNotInjected', message: inVain(pod) }));
    if (one.told !== undefined || tell === undefined) givenUp.shift();
  }

  /** For one pass: the first failure stops its telling. */
  function teller() {
    let hasFailed = false;
    /** @param about equal ones count as one finding. */
    return async (
      one: Kept,
      about: string,
      finding: () => Promise<Parameters<RecordEvent>[2]>,
    ): Promise<void> => {
      if (tell === undefined || hasFailed || one.told === about || !tellings.take(clock.monotonicMs()))
        return;
      const { metadata } = one.pod;
      try {
        await tell(subjectOf(one.pod), metadata.namespace, await finding(), about);
        one.told = about;
      } catch (error) {
        hasFailed = true;
        log.warn({ err: error, namespace: metadata.namespace, pod: metadata.name }, 'Event not made');
      }
    };
  }

  async function heal(lacking: readonly WatchedPod[]): Promise<void> {
    const pod = healing.next(lacking, clock.monotonicMs());
    if (pod === undefined) return;
    const { name, namespace, uid } = pod.metadata;
    const refusal = await replacements.refusal(pod).catch(messageOf);
    if (refusal !== undefined) {
      log.info({ namespace, pod: name, reason: refusal }, 'pod not evicted: no better one would come');
      healing.postponed(pod, REFUSED_FOR_MS, clock.monotonicMs());
      return;
    }
    // The earlier steps took time.
    if (!watch.leads() || !kept.has(uid)) return;
    // The replacement may be seen before the request's answer.
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
      const status = statusOf(error) ?? 0;
      const isBlocked = status === 429;
      metrics.evicted(isBlocked ? 'blocked' : 'failed');
      const asked = error instanceof KubernetesApiError ? error.retryAfterMs : undefined;
      // After any other failure the pod may have been evicted.
      const isRefused = status >= 400 && status < 500;
      if (isRefused) healing.postponed(pod, Math.max(asked ?? 0, BLOCKED_FOR_MS), clock.monotonicMs());
      log[isBlocked ? 'info' : 'warn']({ err: error, namespace, pod: name }, 'pod not evicted');
    }
  }

  return { close: () => watch.close() };
}

function subjectOf(pod: WatchedPod): Parameters<RecordEvent>[0] {
  const { name, uid } = pod.metadata;
  return controllerOf(pod) ?? { apiVersion: 'v1', kind: 'Pod', name, uid };
}

function noToken({ metadata }: WatchedPod, failure: string): string {
  return `the sidecar of pod ${metadata.name} gets no token: ${failure}`;
}

function notInjected({ metadata }: WatchedPod, verdict: Served, obstacle: string | undefined): string {
  const { name, namespace } = metadata;
  const asks = `pod ${name} asks for the sidecar and was made without it`;
  if (obstacle !== undefined) return `${asks}: a new one would have none either; ${obstacle}`;
  return verdict === 'not_served'
    ? `${asks}: the injector does not serve it, by the selectors of its webhook for namespaces and pods; see the namespace ${namespace} and its labels`
    : `${asks}: the injector did not answer then; make the pod anew, as by kubectl rollout restart`;
}

function inVain({ metadata }: WatchedPod): string {
  return `pod ${metadata.name} was evicted for want of the sidecar, and no pod with one came within five minutes: its owner's pods are not evicted again; see the events of its new pods`;
}

/** `unknown`: the API could not tell. `unread`: it is asked later. */
type Served = 'served' | 'not_served' | 'disabled' | 'unknown' | 'unread';

interface ServedPass {
  of(pod: WatchedPod): Promise<Served>;
  end(): void;
}

interface ServedPodsOptions {
  /** Without it every namespace is served unless switched off. */
  readonly configuration: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Selectors {
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
}

interface Configuration extends ApiObject {
  readonly webhooks?: readonly Selectors[];
}

type Labels = Readonly<Record<string, string>>;

interface Namespace extends ApiObject {
  readonly metadata: ApiObject['metadata'] & { readonly labels?: Labels };
}

const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const KNOWN_FOR_MS = 60_000;
const FAILURE_KNOWN_FOR_MS = 15_000;
/** Per pass, which comes every five seconds. */
const MAX_READS = 50;
/** More namespaces are read less often, so that all get their turn. */
const TURN_MS = 120;
/** Per pass; then the API is left alone. */
const MAX_FAILURES = 3;
const MAX_KNOWN = 5000;
const MAX_LABELS_LENGTH = 2048;

export function createServedPods(
  api: KubernetesApi,
  { configuration, clock, log }: ServedPodsOptions,
): () => ServedPass {
  const known = new LruMap<string, { readonly labels: Labels | undefined; readonly atMs: number }>({
    max: MAX_KNOWN,
  });

  async function readLabels(name: string): Promise<Labels> {
    const path = `/api/v1/namespaces/${encodeURIComponent(name)}`;
    const { labels = {} } = (await api.request<Namespace>('GET', path, { accept: METADATA_ONLY })).metadata;
    if (JSON.stringify(labels).length > MAX_LABELS_LENGTH)
      throw new RangeError('a namespace has too many labels');
    return labels;
  }

  return () => {
    let reads = 0;
    let failures = 0;
    let firstError: unknown;
    let selectors: Promise<readonly Selectors[] | undefined> | undefined;

    function failed(error: unknown): undefined {
      firstError ??= error;
      failures++;
    }

    /** Undefined if they could not be read. */
    function readSelectors(): Promise<readonly Selectors[] | undefined> {
      selectors ??= api
        .request<Configuration>('GET', `${CONFIGURATIONS}/${configuration}`)
        .then(({ webhooks = [] }) => webhooks, failed);
      return selectors;
    }

    async function labelsOf(name: string): Promise<Labels | undefined | 'unread'> {
      const found = known.peek(name);
      const forMs =
        found?.labels === undefined ? FAILURE_KNOWN_FOR_MS : Math.max(KNOWN_FOR_MS, known.size * TURN_MS);
      if (found !== undefined && clock.monotonicMs() - found.atMs < forMs) return found.labels;
      if (reads >= MAX_READS || failures >= MAX_FAILURES) {
        return found === undefined ? 'unread' : found.labels;
      }
      reads++;
      const labels = await readLabels(name).catch(failed);
      known.set(name, { labels, atMs: clock.monotonicMs() });
      return labels;
    }

    return {
      async of({ metadata, labelsLeftOut }) {
        if (SYSTEM_NAMESPACES.includes(metadata.namespace)) return 'not_served';
        const labels = await labelsOf(metadata.namespace);
        if (labels === 'unread') return 'unread';
        if (labels === undefined) return 'unknown';
        if (labels[LABEL.namespace] === 'disabled') return 'disabled';
        if (configuration === undefined) return 'served';
        const webhooks = await readSelectors();
        if (webhooks === undefined || labelsLeftOut === true) return 'unknown';
        const isServed = webhooks.some(
          ({ namespaceSelector = {}, objectSelector = {} }) =>
            selects(namespaceSelector, labels) && selects(objectSelector, metadata.labels ?? {}),
        );
        return isServed ? 'served' : 'not_served';
      },
      end() {
        if (failures === 0) return;
        log.warn({ err: firstError, failures }, 'whether pods are served could not be asked');
      },
    };
  };
}

/** Deleted with the release. @throws {KubernetesApiError} */
export async function webhookAsOwner(api: KubernetesApi, name: string): Promise<OwnerReference | undefined> {
  try {
    const { uid } = (await api.request<ApiObject>('GET', `${CONFIGURATIONS}/${name}`)).metadata;
    if (uid === undefined) return undefined;
    return { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration', name, uid };
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}
