/** What a pod of the API shows of its sidecar: that it lacks it, or that it gets no token. */

import { INJECT, MIRROR_POD } from '../pod/annotations.ts';
import { hasSidecar } from '../pod/inject.ts';
import { CONTAINER_NAME } from '../pod/names.ts';
import type { Pod, PodMetadata } from '../pod/pod.ts';

export interface WatchedPod extends Pod {
  readonly metadata: PodMetadata & {
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

/** With which a sidecar ends that never had a token. */
const NO_TOKEN: readonly number[] = [69, 77, 78];

/** Whether a pod runs, or is about to, that asks for the sidecar and lacks it. */
export function lacksSidecar(pod: WatchedPod): boolean {
  const { annotations, deletionTimestamp } = pod.metadata;
  const asked = annotations?.[INJECT] ?? 'false';
  if (asked === 'false' || annotations?.[MIRROR_POD] !== undefined) return false;
  const isOver = deletionTimestamp !== undefined || ['Succeeded', 'Failed'].includes(pod.status?.phase ?? '');
  return !isOver && !hasSidecar(pod);
}

/** What the sidecar said when it ended without ever having had a token; undefined when it has not, or has started since. */
export function tokenFailure({ metadata, status }: WatchedPod): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return undefined;
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const sidecar = statuses.find(({ name }) => name === CONTAINER_NAME);
  if (sidecar === undefined || sidecar.started === true) return undefined;
  const { exitCode, message } = sidecar.state?.terminated ?? sidecar.lastState?.terminated ?? { exitCode: 0 };
  return NO_TOKEN.includes(exitCode) ? (message ?? `it ended with ${exitCode}`) : undefined;
}
