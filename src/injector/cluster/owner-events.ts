/**
 * Tells the owner of pods why they have no sidecar, or lack their Secret. The review that names the owner may be
 * anybody's: it only says where to look. What is told follows from the owner as the API server has it, by the pod
 * template that is in it, and is told nowhere else.
 */

import { createAllowance } from '../../allowance.ts';
import type { Clock } from '../../clock.ts';
import { type ApiObject, type KubernetesApi, type OwnerReference, statusOf } from '../../kubernetes/api.ts';
import type { Logger } from '../../log/logger.ts';
import type { ClusterContact } from '../admission.ts';
import type { Injection } from '../pod/inject.ts';
import { secretMissing } from '../pod/obstacles.ts';
import type { Pod } from '../pod/pod.ts';
import { type Finding, rememberFor, type TellEvent } from './events.ts';

export interface OwnerEventsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly tell: TellEvent;
  /** What becomes of a pod. */
  readonly verdictOf: (pod: Pod, namespace: string) => Injection;
  /** See `ClusterContact`; absent when Secrets are not looked for. */
  readonly secretExists?: ClusterContact['secretExists'];
}

/** What makes pods from a template, by apiVersion and kind, and where it is. */
const COLLECTIONS: Readonly<Record<string, readonly [root: string, resource: string]>> = {
  'v1 ReplicationController': ['/api/v1', 'replicationcontrollers'],
  'apps/v1 ReplicaSet': ['/apis/apps/v1', 'replicasets'],
  'apps/v1 StatefulSet': ['/apis/apps/v1', 'statefulsets'],
  'apps/v1 DaemonSet': ['/apis/apps/v1', 'daemonsets'],
  'batch/v1 Job': ['/apis/batch/v1', 'jobs'],
};

/** However many pods an owner makes, it is looked at so often. */
const LOOKS_APART_MS = 10_000;
/** More at a time are dropped: Events are a courtesy, and the API server has other work. */
const MOST_IN_FLIGHT = 8;
const LOOKS_AT_ONCE = 50;
const LOOKS_PER_SECOND = 5;

export interface Workload extends ApiObject {
  readonly metadata: ApiObject['metadata'] & { readonly uid?: string };
  readonly spec?: { readonly template?: Pod };
}

export function createOwnerEvents(
  api: KubernetesApi,
  { clock, log, tell, verdictOf, secretExists }: OwnerEventsOptions,
): NonNullable<ClusterContact['lookAtOwner']> {
  const looked = rememberFor(clock, LOOKS_APART_MS);
  const looks = createAllowance(clock, LOOKS_AT_ONCE, LOOKS_PER_SECOND);
  let inFlight = 0;

  return (owner, namespace) => {
    const path = ownerPath(owner, namespace);
    if (path === undefined || inFlight >= MOST_IN_FLIGHT) return;
    const key = `${path} ${owner.uid}`;
    if (looked.has(key) || !looks.take()) return;
    looked.add(key);
    inFlight++;
    look(path, owner, namespace)
      .catch((error: unknown) =>
        log.warn({ err: error, namespace, owner: `${owner.kind}/${owner.name}` }, 'Event not made'),
      )
      .finally(() => inFlight--);
  };

  async function look(path: string, owner: OwnerReference, namespace: string): Promise<void> {
    const workload = await readOwner(api, path);
    if (workload?.metadata.uid !== owner.uid) {
      log.debug(
        { namespace, owner: `${owner.kind}/${owner.name}` },
        'a review names an owner that is not there',
      );
      return;
    }
    const finding = await findingOf(workload, namespace);
    if (finding === undefined) return;
    await tell(owner, namespace, finding);
  }

  /** What there is to tell about the pods that this template makes. */
  async function findingOf({ spec }: Workload, namespace: string): Promise<Finding | undefined> {
    const injection = verdictOf(spec?.template ?? {}, namespace);
    if (injection.result === 'skipped') {
      const [message] = injection.warnings;
      return message === undefined ? undefined : { reason: 'TokenSidecarNotInjected', message };
    }
    const secrets = injection.result === 'injected' ? injection.secrets : [];
    for (const name of secrets) {
      if ((await secretExists?.(namespace, name)) === false) {
        return { reason: 'TokenSidecarSecretMissing', message: secretMissing(name, namespace) };
      }
    }
    return undefined;
  }
}

/** Where the owner is; undefined for what makes no pods from a template. */
export function ownerPath({ apiVersion, kind, name }: OwnerReference, namespace: string): string | undefined {
  const key = `${apiVersion} ${kind}`;
  const found = Object.hasOwn(COLLECTIONS, key) ? COLLECTIONS[key] : undefined;
  if (found === undefined || !isSegment(name) || !isSegment(namespace)) return undefined;
  const [root, resource] = found;
  return `${root}/namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(name)}`;
}

/** Undefined when there is none. @throws {KubernetesApiError} */
export async function readOwner(api: KubernetesApi, path: string): Promise<Workload | undefined> {
  try {
    return await api.request<Workload>('GET', path);
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

/** A name that leads nowhere else in a path. */
function isSegment(name: string): boolean {
  return /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name) && !name.includes('..');
}
