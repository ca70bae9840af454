import { randomBytes } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import type { ClusterContact } from '../admission.ts';
import type { KubernetesApi } from './api.ts';

/** Said once, it need not be said again for each pod of a rollout. */
const SILENT_FOR_MS = 600_000;
const MOST_REMEMBERED = 1000;
/** More at a time are dropped: Events are a courtesy, and the API server has other work. */
const MOST_IN_FLIGHT = 8;
const COMPONENT = 'token-sidecar-injector';
/** What the API server takes. */
const MAX_MESSAGE = 1024;

/** Makes an Event on a pod's owner, where `kubectl describe` shows it. */
export function createOwnerEvents(
  api: KubernetesApi,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): NonNullable<ClusterContact['tellOwner']> {
  const told = new Map<string, number>();
  let inFlight = 0;

  return (owner, namespace, reason, message) => {
    const key = `${owner.uid} ${reason} ${message}`;
    const { monotonicMs, wallMs } = clock.now();
    if (monotonicMs < (told.get(key) ?? 0) || inFlight >= MOST_IN_FLIGHT) return;
    told.delete(key);
    if (told.size >= MOST_REMEMBERED) told.delete(told.keys().next().value as string);
    told.set(key, monotonicMs + SILENT_FOR_MS);
    const now = new Date(wallMs).toISOString();
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${owner.name.slice(0, 200)}.${randomBytes(8).toString('hex')}`, namespace },
      involvedObject: {
        apiVersion: owner.apiVersion,
        kind: owner.kind,
        name: owner.name,
        namespace,
        uid: owner.uid,
      },
      type: 'Warning',
      reason,
      message: message.slice(0, MAX_MESSAGE),
      source: { component: COMPONENT },
      reportingComponent: COMPONENT,
      reportingInstance: '',
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    };
    inFlight++;
    api
      .request('POST', `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`, { body: event })
      .catch((error: unknown) => {
        told.delete(key);
        log.warn({ err: error, namespace, owner: `${owner.kind}/${owner.name}`, reason }, 'Event not made');
      })
      .finally(() => inFlight--);
  };
}
