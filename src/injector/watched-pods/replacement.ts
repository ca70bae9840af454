/** What would replace a pod if it were made anew: judged by its owner's template, and by whether the webhook answers. */

import type { ApiObject, KubernetesApi } from '../../platform/kubernetes/api.ts';
import { ownerPath, readOwner } from '../cluster/owner-events.ts';
import { NAMESPACE_LABEL } from '../pod/annotations.ts';
import type { Injection } from '../pod/inject.ts';
import { controllerOf, type Namespace, type Pod } from '../pod/pod.ts';
import { whyUnanswered } from '../webhook-check.ts';
import type { WatchedPod } from './watched-pod.ts';

export interface Replacements {
  /**
   * Why a replacement would have no sidecar; undefined if it would have one, or if that is unknown.
   * @throws {KubernetesApiError}
   */
  obstacle(pod: WatchedPod): Promise<string | undefined>;
  /** Why the pod must not be evicted now; undefined if its replacement would have the sidecar. @throws {KubernetesApiError} */
  refusal(pod: WatchedPod): Promise<string | undefined>;
}

interface ReplacementOptions {
  /** The release's namespace, in which the webhook is tried. */
  readonly namespace: string;
  /** The verdict on a pod. */
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
  /** Undefined if no template can be read. */
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
      if (labels[NAMESPACE_LABEL] === 'disabled') return `the namespace ${name} is switched off`;
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
