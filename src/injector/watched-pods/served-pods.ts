/** Whether the webhook is called for a pod at all: by the selectors of its configuration and the namespace's labels. */

import {
  type ApiObject,
  type KubernetesApi,
  type OwnerReference,
  statusOf,
} from '../../platform/kubernetes/api.ts';
import { LruMap } from '../../platform/limits/lru-map.ts';
import type { Logger } from '../../platform/log/logger.ts';
import type { Clock } from '../../platform/time/clock.ts';
import { type LabelSelector, selects } from '../label-selector.ts';
import { NAMESPACE_LABEL } from '../pod/annotations.ts';
import { SYSTEM_NAMESPACES } from '../pod/inject.ts';
import type { WatchedPod } from './watched-pod.ts';

/** `disabled`: the namespace is switched off. `unknown`: the API could not tell. `unread`: it is asked later. */
export type Served = 'served' | 'not_served' | 'disabled' | 'unknown' | 'unread';

/** One look at many pods. */
export interface ServedPass {
  of(pod: WatchedPod): Promise<Served>;
  /** Reports in one line what could not be asked. */
  end(): void;
}

interface ServedPodsOptions {
  /** Name of the MutatingWebhookConfiguration; without it every namespace is served unless switched off. */
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
/** Per pass, which comes every five seconds: at most ten a second. */
const MAX_READS = 50;
/** The more namespaces are known, the later each is read again, so that all get their turn. */
const TURN_MS = 120;
/** After this many, the API is left alone until the next pass. */
const MAX_FAILURES = 3;
const MAX_KNOWN = 5000;
/** Characters. */
const MAX_LABELS_LENGTH = 2048;

export function createServedPods(
  api: KubernetesApi,
  { configuration, clock, log }: ServedPodsOptions,
): () => ServedPass {
  /** Labels by namespace; undefined if they could not be read. */
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

    /** The selectors of every webhook in the configuration; undefined if it could not be read. */
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
        if (labels[NAMESPACE_LABEL] === 'disabled') return 'disabled';
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

/** The webhook's configuration, which is deleted with the release; undefined if absent. @throws {KubernetesApiError} */
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
