import { describe, expect, test } from 'vitest';
import { ciValuesFor, rendered, SUPPORTED_KUBERNETES, template } from './manifests.ts';
import { validate } from './validator.ts';

describe.each(SUPPORTED_KUBERNETES)('Kubernetes %s', (kubernetes) => {
  test('every rendering is valid', async () => {
    const files = new Map<string, string>();
    for (const ci of await ciValuesFor(kubernetes)) {
      const text = await rendered({ ci, kubernetes });
      if (text.trim() !== '') files.set(ci.replace('.yaml', ''), text);
    }
    expect(files.size).toBeGreaterThan(5);

    const { ok, stdout, stderr } = await validate(kubernetes, files);

    expect(ok, stdout + stderr).toBe(true);
  });

  test.each([
    ['a Deployment with a field it does not know', 'replicas:', 'replicaz:'],
    ['a webhook with a field of the wrong type', 'timeoutSeconds: 5', 'timeoutSeconds: soon'],
  ])('the validator refuses %s', async (_, good, bad) => {
    const text = await rendered({ kubernetes });
    expect(text).toContain(good);

    const { ok } = await validate(kubernetes, new Map([['broken', text.replace(good, bad)]]));

    expect(ok).toBe(false);
  });

  test('the validator refuses a PodMonitor with a field it does not know', async () => {
    const text = await rendered({ kubernetes, set: ['monitoring.podMonitor.enabled=true'] });

    const { ok } = await validate(
      kubernetes,
      new Map([['broken', text.replace('podMetricsEndpoints', 'podEndpoints')]]),
    );

    expect(ok).toBe(false);
  });
});

test('a cluster older than the chart supports is refused', async () => {
  const { ok, stderr } = await template({ kubernetes: '1.27' });

  expect(ok).toBe(false);
  expect(stderr).toContain('chart requires kubeVersion: >=1.28.0-0');
});
