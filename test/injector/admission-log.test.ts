/** What the log says of reviews: which pod, and what became of it. */

import { expect, it, vi } from 'vitest';
import { createMutatingWebhook, createValidatingWebhook } from '../../src/injector/admission.ts';
import { createInjectorMetrics } from '../../src/injector/metrics.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ASKING, DEFAULTS } from './defaults.ts';
import { reviewOf } from './review.ts';

const SPEC = { containers: [{ name: 'app' }] };

function start(secretExists?: () => Promise<boolean>) {
  const registry = new Registry();
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  const contact = secretExists === undefined ? {} : { secretExists };
  const metrics = createInjectorMetrics(registry);
  const options = { defaults: DEFAULTS, cluster: () => ({}), contact, metrics, clock, log };
  const webhooks = { mutate: createMutatingWebhook(options), validate: createValidatingWebhook(options) };
  return {
    clock,
    metrics: () => registry.metrics(),
    async said(pod: object, request = {}, by: keyof typeof webhooks = 'mutate') {
      await webhooks[by](Buffer.from(reviewOf(pod, { namespace: 'team', ...request })), 'api_server');
      return lines.splice(0).map((line) => JSON.parse(line));
    },
  };
}

it('an admitted pod is logged by its name or generateName', async () => {
  const { said } = start();
  const annotations = ASKING;
  expect(
    await said({ metadata: { name: 'shop-1', generateName: 'shop-', annotations }, spec: SPEC }),
  ).toEqual([
    expect.objectContaining({
      level: 'info',
      namespace: 'team',
      pod: 'shop-1',
      result: 'injected',
      reason: 'native',
      dryRun: false,
    }),
  ]);
  const [line] = await said(
    { metadata: { generateName: 'shop-', annotations }, spec: SPEC },
    { dryRun: true },
  );
  expect(line).toMatchObject({ pod: 'shop-', dryRun: true });
  expect(line).not.toHaveProperty('warnings');
});

it('warnings are logged', async () => {
  const { said } = start(async () => false);
  expect(await said({ metadata: { annotations: ASKING }, spec: SPEC })).toEqual([
    expect.objectContaining({ warnings: [expect.stringContaining('the Secret shop-oauth does not exist')] }),
  ]);
});

it('a pod that does not ask is logged at debug level only', async () => {
  const { said } = start();
  expect(await said({ metadata: {}, spec: SPEC })).toEqual([
    expect.objectContaining({ level: 'debug', result: 'skipped', reason: 'not_requested' }),
  ]);
});

it('a refused pod is logged with the reason', async () => {
  const { said } = start();
  const pod = { metadata: { name: 'shop', annotations: ASKING }, spec: { ...SPEC, hostNetwork: true } };
  expect(await said(pod)).toEqual([
    expect.objectContaining({
      level: 'warn',
      pod: 'shop',
      result: 'rejected',
      reason: 'unsuitable_pod',
      message: expect.stringContaining('spec.hostNetwork'),
    }),
  ]);
});

it.each([
  [{ name: 'shop-1', generateName: 'shop-' }, 'shop-1'],
  [{ generateName: 'shop-' }, 'shop-'],
])('a pod without its sidecar (%j)', async (metadata, pod) => {
  const { said } = start();
  const without = { metadata: { ...metadata, annotations: ASKING }, spec: SPEC };
  expect(await said(without, {}, 'validate')).toEqual([
    expect.objectContaining({ level: 'warn', namespace: 'team', pod }),
  ]);
  expect(await said(without, { namespace: 'kube-system' }, 'validate')).toEqual([]);
});

it('a second pass does not look for the Secret again', async () => {
  const secretExists = vi.fn(async () => false);
  const { said } = start(secretExists);
  const annotations = {
    ...ASKING,
    'token-sidecar.dev/status': 'injected',
    'token-sidecar.dev/mode': 'forward',
    'token-sidecar.dev/config-map': 'routes',
  };
  const spec = { containers: [{ name: 'token-sidecar' }, { name: 'later' }] };
  const [line] = await said({ metadata: { annotations }, spec });
  expect(line).toMatchObject({ reason: 'later_containers' });
  expect(line).not.toHaveProperty('warnings');
  expect(secretExists).not.toHaveBeenCalled();
});

it('how long a review took is counted in seconds', async () => {
  const clock: { advance?: (ms: number) => Promise<void> } = {};
  const started = start(async () => {
    await clock.advance?.(300);
    return true;
  });
  clock.advance = (ms) => started.clock.advance(ms);
  await started.said({ metadata: { annotations: ASKING }, spec: SPEC });
  expect(await started.metrics()).toMatch(/admission_duration_seconds_sum 0\.3\b/);
});
