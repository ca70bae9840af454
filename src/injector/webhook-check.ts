/**
 * Whether API servers reach the webhook, which only they can tell. It refuses a dry run of a ConfigMap in known words: if let
 * through, others' policies could refuse it.
 */

import { messageOf, SidecarError } from '../platform/errors.ts';
import type { ApiRequestOptions, KubernetesApi } from '../platform/kubernetes/api.ts';
import { type Clock, hasPassed, later, remainingMs } from '../platform/time/clock.ts';
import { admissionResponse, parseAdmissionReview, type Webhook } from './admission.ts';

/** Selects what is sent to the webhook. */
const LABEL = 'token-sidecar.dev/check';
const ANSWER = 'the webhook of token-sidecar answers';

const INTERVAL_MS = 1000;

/** An API server waits for a webhook for at most 30 s. */
const ATTEMPT_MS = 35_000;

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
  /** The release's. */
  readonly namespace: string;
  /** For all attempts; 0 for one without a limit. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly pause: (ms: number) => Promise<void>;
  onWaiting(reason: string): void;
}

/** @throws {SidecarError} `kubernetes_api` with the last reason. */
export async function waitForWebhook(api: KubernetesApi, options: WebhookCheckOptions): Promise<void> {
  const { namespace, timeoutMs, clock, signal, pause, onWaiting } = options;
  const deadline = later(clock.now(), timeoutMs);
  // In whole milliseconds, as timeouts take them.
  const leftOf = (ms: number) => Math.min(ms, Math.ceil(remainingMs(deadline, clock.now())));
  let told: string | undefined;
  /** The last attempt may only say that it was cut short. */
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
    await pause(leftOf(INTERVAL_MS));
    if (hasPassed(deadline, clock.now())) {
      throw new SidecarError(
        'kubernetes_api',
        `the webhook did not answer the API server within ${timeoutMs} ms: ${reason}${before === undefined ? '' : `; before that: ${before}`}`,
      );
    }
  }
}

/** Undefined if the webhook answers. */
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
