/**
 * Whether API servers reach the webhook: the way is theirs, through the Service, by the CA bundle, past firewalls, so only
 * they can tell. A dry run of a ConfigMap that the webhook's configuration sends here is refused in our words. Were it let
 * through, policies and quotas of others would have their say on it, and a refusal of theirs would pass for no answer.
 */

import { messageOf, SidecarError } from '../platform/errors.ts';
import type { ApiRequestOptions, KubernetesApi } from '../platform/kubernetes/api.ts';
import { type Clock, isPast, later, remainingMs } from '../platform/time/clock.ts';
import { admissionResponse, parseAdmissionReview, type Webhook } from './admission.ts';

/** By which the webhook's configuration selects what is sent. */
const LABEL = 'token-sidecar.dev/check';
const ANSWER = 'the webhook of token-sidecar answers';

const EVERY_MS = 1000;

/** The API server waits for a webhook for at most 30 s. */
const ATTEMPT_MS = 35_000;

/** Refuses what is only tried, and lets everything else pass. */
export function createCheckWebhook(): Webhook {
  return async (review) => {
    const request = parseAdmissionReview(review);
    if (typeof request === 'string') return { status: 400, body: request };
    const { uid, dryRun, pod } = request;
    const isTried = dryRun && pod === undefined;
    const verdict = isTried ? { allowed: false, message: ANSWER } : { allowed: true };
    return { status: 200, body: admissionResponse(uid, verdict) };
  };
}

interface WebhookCheckOptions {
  /** That of the webhook's own release. */
  readonly namespace: string;
  /** For all attempts together; 0 for one, which may take as long as it does. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Resolves after so long, or at once when asked to stop. */
  readonly pause: (ms: number) => Promise<void>;
  /** Called with each new reason why it does not answer yet. */
  onWaiting(reason: string): void;
}

/** @throws {SidecarError} `kubernetes_api` with the last reason, when the webhook has not answered in time. */
export async function waitForWebhook(api: KubernetesApi, options: WebhookCheckOptions): Promise<void> {
  const { namespace, timeoutMs, clock, signal, pause, onWaiting } = options;
  const deadline = later(clock.now(), timeoutMs);
  // In whole milliseconds, as timeouts take them.
  const leftOf = (ms: number) => Math.min(ms, Math.ceil(remainingMs(deadline, clock.now())));
  let told: string | undefined;
  /** The last attempt may be cut short, and say no more than that: the reason before it is given, too. */
  let before: string | undefined;
  for (;;) {
    const attemptMs = timeoutMs === 0 ? ATTEMPT_MS : leftOf(ATTEMPT_MS);
    const reason = await whyUnanswered(api, namespace, { timeoutMs: attemptMs, signal });
    if (reason === undefined) return;
    if (signal.aborted) throw new SidecarError('kubernetes_api', 'asked to stop before the webhook answered');
    if (reason !== told) {
      before = told;
      told = reason;
      onWaiting(reason);
    }
    await pause(leftOf(EVERY_MS));
    if (isPast(deadline, clock.now())) {
      throw new SidecarError(
        'kubernetes_api',
        `the webhook did not answer the API server within ${timeoutMs} ms: ${reason}${before === undefined ? '' : `; before that: ${before}`}`,
      );
    }
  }
}

/** Why the webhook does not answer; undefined when it does. */
export async function whyUnanswered(
  api: KubernetesApi,
  namespace: string,
  attempt: Pick<ApiRequestOptions, 'timeoutMs' | 'signal'> = {},
): Promise<string | undefined> {
  const body = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'token-sidecar-check', labels: { [LABEL]: 'true' } },
  };
  try {
    await api.request('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      query: { dryRun: 'All' },
      body,
      timeoutMs: ATTEMPT_MS,
      explainRefusal: true,
      ...attempt,
    });
    return 'the API server does not call it; its configuration is not there yet';
  } catch (error) {
    const reason = messageOf(error);
    return reason.includes(`denied the request: ${ANSWER}`) ? undefined : reason;
  }
}
