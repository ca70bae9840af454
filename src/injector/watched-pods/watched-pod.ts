import { EXIT_STATUS_OF } from '../../platform/exit-status.ts';
import type { OwnerReference } from '../../platform/kubernetes/api.ts';
import { ANNOTATION, MIRROR_POD } from '../pod/annotations.ts';
import { hasSidecar } from '../pod/inject.ts';
import { CONTAINER, controllerOf, type Pod } from '../pod/pod.ts';

export interface WatchedPod extends Pod {
  /** It has more labels than are kept. */
  readonly labelsLeftOut?: true;
  readonly metadata: Pod['metadata'] & {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
  readonly status?: {
    readonly phase?: string;
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly started?: boolean;
  readonly state?: { readonly terminated?: Termination };
  readonly lastState?: { readonly terminated?: Termination };
}

interface Termination {
  readonly exitCode: number;
  readonly message?: string;
}

/** Of a sidecar that never had a token. */
const NO_TOKEN: readonly number[] = [
  EXIT_STATUS_OF.provider_unavailable,
  EXIT_STATUS_OF.credentials_rejected,
  EXIT_STATUS_OF.configuration,
];

/** Characters. A pod's creator could make them large. */
const MAX_LABELS_LENGTH = 2048;
const MAX_OWNER_LENGTH = 1024;
const MAX_FAILURE_LENGTH = 512;

/** A few KiB at most, of up to 1.5 MiB. */
export function reduced(pod: WatchedPod): WatchedPod {
  const { name, namespace, uid, labels = {} } = pod.metadata;
  const { apiVersion, kind, name: ownerName, uid: ownerUid } = controllerOf(pod) ?? {};
  const owner = { apiVersion, kind, name: ownerName, uid: ownerUid, controller: true } as OwnerReference;
  const hasOwner = ownerUid !== undefined && JSON.stringify(owner).length <= MAX_OWNER_LENGTH;
  const keepsLabels = JSON.stringify(labels).length <= MAX_LABELS_LENGTH;
  return {
    metadata: {
      name,
      namespace,
      uid,
      ...(hasOwner ? { ownerReferences: [owner] } : {}),
      ...(keepsLabels ? { labels } : {}),
    },
    ...(keepsLabels ? {} : { labelsLeftOut: true }),
  };
}

/** Also before the pod runs. */
export function lacksSidecar(pod: WatchedPod): boolean {
  const { annotations, deletionTimestamp } = pod.metadata;
  const asked = annotations?.[ANNOTATION.inject] ?? 'false';
  if (asked === 'false' || annotations?.[MIRROR_POD] !== undefined) return false;
  const isOver = deletionTimestamp !== undefined || ['Succeeded', 'Failed'].includes(pod.status?.phase ?? '');
  return !isOver && !hasSidecar(pod);
}

/** Of a sidecar that never had a token; undefined once it has restarted. */
export function tokenFailure({ metadata, status }: WatchedPod): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return undefined;
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const sidecar = statuses.find(({ name }) => name === CONTAINER.sidecar);
  if (sidecar === undefined || sidecar.started === true) return undefined;
  const { exitCode, message } = sidecar.state?.terminated ?? sidecar.lastState?.terminated ?? { exitCode: 0 };
  return NO_TOKEN.includes(exitCode) ? shortened(message ?? `it ended with ${exitCode}`) : undefined;
}

/** A copy, since a slice would hold on to the whole. */
function shortened(text: string): string {
  return text.length <= MAX_FAILURE_LENGTH ? text : Buffer.from(text.slice(0, MAX_FAILURE_LENGTH)).toString();
}
