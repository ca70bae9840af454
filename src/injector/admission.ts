/** Answers admission reviews: the two webhooks, mutating and validating. */

import type { OwnerReference } from '../platform/kubernetes/api.ts';
import { TokenBucket } from '../platform/limits/token-bucket.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import { type AdmissionRequest, admissionResponse, parseAdmissionReview } from './admission-review.ts';
import type { InjectorMetrics } from './metrics.ts';
import { INJECT } from './pod/annotations.ts';
import { hasSidecar, type Injection, inject, SYSTEM_NAMESPACES } from './pod/inject.ts';
import type { Cluster, InjectionDefaults } from './pod/injection-defaults.ts';
import { secretMissing } from './pod/obstacles.ts';
import { controllerOf } from './pod/pod.ts';

export interface AdmissionAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * Who sent a review. Any pod can reach the webhooks and write a review by hand. Nothing vouches for such a review, so
 * its answer depends only on the review and the settings.
 */
export type Caller = 'api_server' | 'unverified';

/** A webhook takes the body of a review and returns the answer. Never rejects. */
export type Webhook = (body: Buffer, caller: Caller) => Promise<AdmissionAnswer>;

/** What the injector asks and tells the cluster through the Kubernetes API; in file mode it does neither. */
export interface ClusterContact {
  /** Whether the Secret exists; undefined if that cannot be known now. Asked only for a verified API server. */
  secretExists?(namespace: string, name: string): Promise<boolean | undefined>;
  /** Looks at a pod's owner and tells it what is wrong by the API's own state. Never waits and never fails. */
  lookAtOwner?(owner: OwnerReference, namespace: string): void;
}

interface AdmissionOptions {
  readonly defaults: InjectionDefaults;
  /** Read anew for each pod: clusters are upgraded. */
  readonly cluster: () => Cluster;
  readonly contact: ClusterContact;
  readonly metrics: InjectorMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Adds the sidecar to a pod that asks for it, or refuses the pod with everything that prevents injection. */
export function createMutatingWebhook(options: AdmissionOptions): Webhook {
  const { defaults, cluster, contact, log } = options;

  async function admit({ uid, namespace, dryRun, pod }: AdmissionRequest, caller: Caller): Promise<Verdict> {
    if (pod === undefined) return ignored(uid);
    const injection = inject(pod, { name: namespace }, defaults, cluster());
    const { result, reason } = injection;
    const named = {
      namespace,
      pod: pod.metadata?.name ?? pod.metadata?.generateName,
      result,
      reason,
      dryRun,
    };
    if (injection.result === 'rejected') {
      log.warn({ ...named, message: injection.message }, 'pod refused');
      const body = admissionResponse(uid, { allowed: false, message: injection.message });
      return { counted: { result, reason }, body };
    }
    const missing = caller === 'api_server' ? await missingSecrets(injection, namespace) : [];
    const warnings = [...injection.warnings, ...missing];
    const level = reason === 'not_requested' ? 'debug' : 'info';
    log[level]({ ...named, ...(warnings.length === 0 ? {} : { warnings }) }, 'pod admitted');
    const owner = controllerOf(pod);
    const isWorthALook =
      injection.result === 'skipped' ? injection.warnings.length > 0 : contact.secretExists !== undefined;
    if (owner !== undefined && !dryRun && isWorthALook) contact.lookAtOwner?.(owner, namespace);
    const counted = { result, reason };
    const patch = injection.result === 'injected' ? injection.patch : [];
    return { counted, body: admissionResponse(uid, { allowed: true, patch, warnings, audit: counted }) };
  }

  async function missingSecrets(injection: Injection, namespace: string): Promise<readonly string[]> {
    const secrets = injection.result === 'injected' ? injection.secrets : [];
    const exist = await Promise.all(secrets.map((name) => contact.secretExists?.(namespace, name)));
    return secrets.filter((_, index) => exist[index] === false).map((name) => secretMissing(name, namespace));
  }

  return answering(options, admit);
}

/** Refuses pods that asked for the sidecar and did not get it, whatever the reason. Runs after all mutation. */
export function createValidatingWebhook(options: AdmissionOptions): Webhook {
  const { log } = options;
  return answering(options, async ({ uid, namespace, pod }) => {
    const asked = pod?.metadata?.annotations?.[INJECT] ?? 'false';
    if (pod === undefined || asked === 'false' || SYSTEM_NAMESPACES.includes(namespace) || hasSidecar(pod)) {
      return { body: admissionResponse(uid, { allowed: true }) };
    }
    const message =
      'token-sidecar: the pod asks for the sidecar and did not get it: the injector did not answer or skipped the pod';
    log.warn(
      { namespace, pod: pod.metadata?.name ?? pod.metadata?.generateName },
      'pod without its sidecar refused',
    );
    return {
      counted: { result: 'rejected', reason: 'not_injected' },
      body: admissionResponse(uid, { allowed: false, message }),
    };
  });
}

interface Verdict {
  readonly body: string;
  /** Absent if the mutating webhook has already counted the review. */
  readonly counted?: { readonly result: Injection['result']; readonly reason: string };
}

function ignored(uid: string): Verdict {
  return {
    counted: { result: 'skipped', reason: 'not_a_new_pod' },
    body: admissionResponse(uid, { allowed: true }),
  };
}

/** A failure of ours is a failed call, 500, so that the webhook's failurePolicy decides about the pod. */
function answering(
  { metrics, clock, log }: AdmissionOptions,
  admit: (request: AdmissionRequest, caller: Caller) => Promise<Verdict>,
): Webhook {
  const complaints = new TokenBucket({ burst: 10, perSecond: 1 });
  return async (review, caller) => {
    const startedAt = clock.now();
    const seconds = (): number => (clock.now().monotonicMs - startedAt.monotonicMs) / 1000;
    const request = parseAdmissionReview(review);
    if (typeof request === 'string') {
      metrics.admitted('error', 'malformed', seconds());
      // Anybody can send these: the metric counts them all.
      if (complaints.take(clock.monotonicMs()))
        log.error({ reason: request }, 'admission review not understood');
      return { status: 400, body: request };
    }
    try {
      const { counted, body } = await admit(request, caller);
      if (counted !== undefined) metrics.admitted(counted.result, counted.reason, seconds());
      return { status: 200, body };
    } catch (error) {
      metrics.admitted('error', 'internal', seconds());
      log.error({ err: error }, 'admission review failed');
      return { status: 500, body: 'internal error' };
    }
  };
}
