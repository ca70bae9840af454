import { expect, it } from 'vitest';
import { createCheckWebhook, waitForWebhook } from '../../src/injector/webhook-check.ts';
import {
  type ApiRequestOptions,
  type KubernetesApi,
  KubernetesApiError,
} from '../../src/platform/kubernetes/api.ts';
import { ManualClock } from '../support/manual-clock.ts';

const REFUSED = new KubernetesApiError('POST /…: status 500: connection refused', 500);
const UNCALLED = { metadata: {} };
const ANSWERED = new KubernetesApiError(
  'POST /…: status 403: admission webhook "check.token-sidecar.dev" denied the request: the webhook of token-sidecar answers; …',
  403,
);

/** An API server that gives these answers in turn, and then the last of them. */
function serverWith(...answers: readonly (object | KubernetesApiError)[]) {
  const asked: { readonly path: string; readonly options: ApiRequestOptions | undefined }[] = [];
  const api: KubernetesApi = {
    async request<T>(_method: string, path: string, options?: ApiRequestOptions) {
      asked.push({ path, options });
      const answer = answers[Math.min(asked.length, answers.length) - 1];
      if (answer instanceof Error) throw answer;
      return answer as T;
    },
    watch: () => Promise.reject(new Error('nothing is watched')),
  };
  return { api, asked };
}

async function wait(
  api: KubernetesApi,
  { signal = new AbortController().signal, timeoutMs = 5000, clock = new ManualClock() } = {},
) {
  const reasons: string[] = [];
  await waitForWebhook(api, {
    namespace: 'tokens',
    timeoutMs,
    clock,
    signal,
    pause: async (ms) => clock.advance(ms),
    onWaiting: (reason) => reasons.push(reason),
  });
  return reasons;
}

it('waits until the trial is refused with its own message, and logs each reason once', async () => {
  const { api, asked } = serverWith(REFUSED, REFUSED, UNCALLED, ANSWERED);

  expect(await wait(api)).toEqual([
    expect.stringContaining('connection refused'),
    expect.stringContaining('does not call it'),
  ]);
  expect(asked).toHaveLength(4);
});

it('tries in a dry run, in the namespace of the release', async () => {
  const { api, asked } = serverWith(ANSWERED);

  await wait(api);
  expect(asked[0]?.path).toBe('/api/v1/namespaces/tokens/configmaps');
  expect(asked[0]?.options?.query).toEqual({ dryRun: 'All' });
});

it('does not take the refusal of another webhook for its answer', async () => {
  const words = 'admission webhook "other.example" denied the request: not here';
  const { api } = serverWith(new KubernetesApiError(`POST /…: status 403: ${words}`, 403));

  await expect(wait(api)).rejects.toThrow(words);
});

it('gives up with the last reason', async () => {
  const { api } = serverWith(UNCALLED, REFUSED);

  await expect(wait(api)).rejects.toMatchObject({
    code: 'kubernetes_api',
    message: expect.stringMatching(/within 5000 ms: .*connection refused/),
  });
});

it('gives no attempt more than is left', async () => {
  const clock = new ManualClock();
  const { api, asked } = serverWith(UNCALLED);
  const slow: KubernetesApi = {
    ...api,
    async request<T>(...request: Parameters<KubernetesApi['request']>) {
      await clock.advance(1500.5);
      return await api.request<T>(...request);
    },
  };

  await expect(wait(slow, { clock })).rejects.toThrow('within 5000 ms');
  expect(asked.map(({ options }) => options?.timeoutMs)).toEqual([5000, 2500]);
});

it('gives up with the last reason and the one before: the last attempt is cut short', async () => {
  const clock = new ManualClock();
  const { api } = serverWith(REFUSED);
  /** The API server waits for the webhook for 3 s. */
  const slow: KubernetesApi = {
    ...api,
    async request<T>(...request: Parameters<KubernetesApi['request']>) {
      const timeoutMs = request[2]?.timeoutMs ?? 0;
      await clock.advance(Math.min(3000, timeoutMs));
      if (timeoutMs < 3000) throw new KubernetesApiError('POST /…: aborted due to timeout');
      return await api.request<T>(...request);
    },
  };

  await expect(wait(slow, { clock })).rejects.toThrow(
    /aborted due to timeout; before that: .*connection refused/,
  );
});

it('asks once if there is no time to wait', async () => {
  const { api, asked } = serverWith(REFUSED);

  await expect(wait(api, { timeoutMs: 0 })).rejects.toThrow('connection refused');
  expect(asked.map(({ options }) => options?.timeoutMs)).toEqual([35_000]);
});

it('stops with its signal, and aborts its request', async () => {
  const { api, asked } = serverWith(REFUSED);
  const signal = AbortSignal.abort();

  await expect(wait(api, { signal })).rejects.toThrow('asked to stop');
  expect(asked[0]?.options?.signal).toBe(signal);
});

function reviewOf(request: object): Buffer {
  const whole = {
    uid: 'u-1',
    namespace: 'tokens',
    operation: 'CREATE',
    kind: { group: '', version: 'v1', kind: 'ConfigMap' },
    object: { metadata: { name: 'token-sidecar-check' } },
    ...request,
  };
  return Buffer.from(
    JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: whole }),
  );
}

it('refuses its dry run, and allows real objects', async () => {
  const answer = async (request: object) => {
    const { status, body } = await createCheckWebhook()(reviewOf(request), 'unverified');
    return { http: status, ...JSON.parse(body).response };
  };

  const message = 'the webhook of token-sidecar answers';
  const refused = { http: 200, uid: 'u-1', allowed: false, status: { code: 403, message } };
  expect(await answer({ dryRun: true })).toMatchObject(refused);
  expect(await answer({ dryRun: false })).toMatchObject({ http: 200, allowed: true });
});

it('refuses a body that is no review', async () => {
  expect(await createCheckWebhook()(Buffer.from('{}'), 'unverified')).toMatchObject({ status: 400 });
});
