/** Whether the webhook is asked about a pod at all: by the selectors of its configuration and the namespace's labels. */

import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log/logger.ts';
import type { ApiObject, KubernetesApi } from '../kubernetes/api.ts';
import { type LabelSelector, selects } from '../label-selector.ts';
import { NAMESPACE_LABEL } from '../pod/annotations.ts';
import { SYSTEM_NAMESPACES } from '../pod/inject.ts';
import type { WatchedPod } from './watched-pod.ts';

/** `disabled`: somebody has switched the namespace off. `unknown`: the API could not be asked. */
export type Served = 'served' | 'not_served' | 'disabled' | 'unknown';

export interface ServedPodsOptions {
  /** Name of the MutatingWebhookConfiguration; without it every namespace is served that is not switched off. */
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

interface Namespace extends ApiObject {
  readonly metadata: ApiObject['metadata'] & { readonly labels?: Readonly<Record<string, string>> };
}

const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const KNOWN_FOR_MS = 60_000;
const MOST_KNOWN = 1000;

export function createServedPods(
  api: KubernetesApi,
  { configuration, clock, log }: ServedPodsOptions,
): (pod: WatchedPod) => Promise<Served> {
  const known = new Map<string, { readonly value: unknown; readonly untilMs: number }>();

  /** The object as it was within the last minute. */
  async function recent<T extends ApiObject>(path: string, accept?: string): Promise<T> {
    const found = known.get(path);
    if (found !== undefined && clock.monotonicMs() < found.untilMs) return found.value as T;
    const value = await api.request<T>('GET', path, accept === undefined ? {} : { accept });
    known.delete(path);
    if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value as string);
    known.set(path, { value, untilMs: clock.monotonicMs() + KNOWN_FOR_MS });
    return value;
  }

  return async ({ metadata }) => {
    if (SYSTEM_NAMESPACES.includes(metadata.namespace)) return 'not_served';
    try {
      const { labels = {} } = (
        await recent<Namespace>(`/api/v1/namespaces/${encodeURIComponent(metadata.namespace)}`, METADATA_ONLY)
      ).metadata;
      if (labels[NAMESPACE_LABEL] === 'disabled') return 'disabled';
      if (configuration === undefined) return 'served';
      const { webhooks = [] } = await recent<Configuration>(`${CONFIGURATIONS}/${configuration}`);
      const isServed = webhooks.some(
        ({ namespaceSelector = {}, objectSelector = {} }) =>
          selects(namespaceSelector, labels) && selects(objectSelector, metadata.labels ?? {}),
      );
      return isServed ? 'served' : 'not_served';
    } catch (error) {
      log.warn({ err: error, namespace: metadata.namespace }, 'whether pods are served could not be asked');
      return 'unknown';
    }
  };
}
