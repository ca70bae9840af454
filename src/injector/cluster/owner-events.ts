/**
 * Tells the owner of pods why they have no sidecar or Secret. A review may be forged, so the Event follows from the owner's
 * template in the API.
 */

import { randomBytes } from 'node:crypto';
import {
  type ApiObject,
  type KubernetesApi,
  type OwnerReference,
  statusOf,
} from '../../platform/kubernetes/api.ts';
import { ExpiringMap } from '../../platform/limits/lru-map.ts';
import { TokenBucket } from '../../platform/limits/token-bucket.ts';
import type { Logger } from '../../platform/log/logger.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { ClusterContact } from '../admission.ts';
import type { Injection } from '../pod/inject.ts';
import type { Pod } from '../pod/pod.ts';
import { secretMissing } from '../pod/validation-errors.ts';

interface OwnerEventsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly tell: RecordEvent;
  readonly verdictOf: (pod: Pod, namespace: string) => Injection;
  readonly secretExists?: ClusterContact['secretExists'];
}

/** By apiVersion and kind. */
const COLLECTIONS: Readonly<Record<string, readonly [root: string, resource: string]>> = {
  'v1 ReplicationController': ['/api/v1', 'replicationcontrollers'],
  'apps/v1 ReplicaSet': ['/apis/apps/v1', 'replicasets'],
  'apps/v1 StatefulSet': ['/apis/apps/v1', 'statefulsets'],
  'apps/v1 DaemonSet': ['/apis/apps/v1', 'daemonsets'],
  'batch/v1 Job': ['/apis/batch/v1', 'jobs'],
};

/** Between looks at one owner. */
const MIN_LOOK_INTERVAL_MS = 10_000;
const MAX_IN_FLIGHT = 8;
const LOOKS = { burst: 50, perSecond: 5 };

interface Workload extends ApiObject {
  readonly metadata: ApiObject['metadata'] & { readonly uid?: string };
  readonly spec?: { readonly template?: Pod };
}

export function createOwnerEvents(
  api: KubernetesApi,
  { clock, log, tell, verdictOf, secretExists }: OwnerEventsOptions,
): NonNullable<ClusterContact['lookAtOwner']> {
  const looked = new ExpiringMap<string, true>(clock, MAX_REMEMBERED);
  const looks = new TokenBucket(LOOKS);
  let inFlight = 0;

  return (owner, namespace) => {
    const path = ownerPath(owner, namespace);
    if (path === undefined || inFlight >= MAX_IN_FLIGHT) return;
    const key = `${path} ${owner.uid}`;
    if (looked.get(key) || !looks.take(clock.monotonicMs())) return;
    looked.set(key, true, MIN_LOOK_INTERVAL_MS);
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

/** Undefined for kinds that make no pods from a template. */
export function ownerPath({ apiVersion, kind, name }: OwnerReference, namespace: string): string | undefined {
  const key = `${apiVersion} ${kind}`;
  const found = Object.hasOwn(COLLECTIONS, key) ? COLLECTIONS[key] : undefined;
  if (found === undefined || !isSegment(name) || !isSegment(namespace)) return undefined;
  const [root, resource] = found;
  return `${root}/namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(name)}`;
}

/** Undefined if it does not exist. @throws {KubernetesApiError} */
export async function readOwner(api: KubernetesApi, path: string): Promise<Workload | undefined> {
  try {
    return await api.request<Workload>('GET', path);
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

/** A name that cannot change an API path. */
function isSegment(name: string): boolean {
  return /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name) && !name.includes('..');
}

// The rate of Events is bounded for the API server's sake.

type EventReason = 'TokenSidecarNotInjected' | 'TokenSidecarSecretMissing' | 'TokenSidecarNoToken';

interface Finding {
  readonly reason: EventReason;
  readonly message: string;
}

type Subject = Pick<OwnerReference, 'apiVersion' | 'kind' | 'name' | 'uid'>;

/** One Event is enough for a rollout. */
const SILENT_FOR_MS = 600_000;
const MAX_REMEMBERED = 1000;
const COMPONENT = 'token-sidecar-injector';
/** The API server's limit. */
const MAX_MESSAGE = 1024;

/** @throws {KubernetesApiError} The next call tries again. */
export type RecordEvent = (
  subject: Subject,
  namespace: string,
  finding: Finding,
  about?: string,
) => Promise<void>;

/** Findings with one `about` count as one, and `about` is the message by default. */
export function createEventRecorder(api: KubernetesApi, clock: Clock): RecordEvent {
  const told = new ExpiringMap<string, true>(clock, MAX_REMEMBERED);
  return async (subject, namespace, finding, about = finding.message) => {
    const key = `${subject.uid} ${finding.reason} ${about}`;
    if (told.get(key)) return;
    told.set(key, true, SILENT_FOR_MS);
    try {
      await api.request('POST', `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`, {
        body: eventOn(subject, namespace, finding, clock.now().wallMs),
      });
    } catch (error) {
      told.delete(key);
      throw error;
    }
  };
}

function eventOn(subject: Subject, namespace: string, finding: Finding, nowMs: number): object {
  const { apiVersion, kind, name, uid } = subject;
  const now = new Date(nowMs).toISOString();
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name.slice(0, 200)}.${randomBytes(8).toString('hex')}`, namespace },
    involvedObject: { apiVersion, kind, name, namespace, uid },
    type: 'Warning',
    reason: finding.reason,
    message: finding.message.slice(0, MAX_MESSAGE),
    source: { component: COMPONENT },
    reportingComponent: COMPONENT,
    reportingInstance: '',
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  };
}
