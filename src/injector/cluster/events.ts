/** Events on objects: each is repeated only after a while, and their rate is bounded for the API server's sake. */

import { randomBytes } from 'node:crypto';
import type { KubernetesApi, OwnerReference } from '../../platform/kubernetes/api.ts';
import { ExpiringMap } from '../../platform/limits/lru-map.ts';
import type { Clock } from '../../platform/time/clock.ts';

type EventReason = 'TokenSidecarNotInjected' | 'TokenSidecarSecretMissing' | 'TokenSidecarNoToken';

export interface Finding {
  readonly reason: EventReason;
  readonly message: string;
}

/** The object of an Event: a pod or its owner. */
export type Subject = Pick<OwnerReference, 'apiVersion' | 'kind' | 'name' | 'uid'>;

/** One Event is enough for all pods of a rollout. */
const SILENT_FOR_MS = 600_000;
/** Keys of what is not repeated. */
export const MAX_REMEMBERED = 1000;
const COMPONENT = 'token-sidecar-injector';
/** The API server's limit. */
const MAX_MESSAGE = 1024;

/** @throws {KubernetesApiError} The next call then tries again. */
export type TellEvent = (
  subject: Subject,
  namespace: string,
  finding: Finding,
  about?: string,
) => Promise<void>;

/** In the teller, findings with the same `about` count as one, even if their messages differ; the message by default. */
export function createEventTeller(api: KubernetesApi, clock: Clock): TellEvent {
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
