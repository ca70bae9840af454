import { describe, expect, test } from 'vitest';
import { ciValues, type Manifest, manifests, only } from './manifests.ts';

function matches(selector: Record<string, string>, labels: Record<string, string>): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

function ofKind(all: readonly Manifest[], kind: string): Manifest[] {
  return all.filter((manifest) => manifest.kind === kind);
}

/** What runs for as long as the release is there. */
function workloadsOf(all: readonly Manifest[]): Manifest[] {
  return [...ofKind(all, 'Deployment'), ...ofKind(all, 'DaemonSet')];
}

describe.each(await ciValues())('%s', (ci) => {
  test('every Service selects one workload and names ports that it has', async () => {
    const all = await manifests({ ci });
    for (const service of ofKind(all, 'Service')) {
      const selected = workloadsOf(all).filter(({ spec }) =>
        matches(service.spec.selector, spec.template.metadata.labels),
      );
      expect(selected.map(({ metadata }) => metadata.name)).toEqual([service.metadata.name]);
      const ports = selected[0].spec.template.spec.containers[0].ports.map(
        ({ name }: { name: string }) => name,
      );
      for (const { targetPort } of service.spec.ports) expect(ports).toContain(targetPort);
    }
  });

  test('every ServiceMonitor selects one Service and a port that it has', async () => {
    const all = await manifests({ ci });
    for (const monitor of ofKind(all, 'ServiceMonitor')) {
      const selected = ofKind(all, 'Service').filter((service) =>
        matches(monitor.spec.selector.matchLabels, service.metadata.labels),
      );
      expect(selected).toHaveLength(1);
      const ports = selected[0].spec.ports.map(({ name }: { name: string }) => name);
      for (const { port } of monitor.spec.endpoints) expect(ports).toContain(port);
    }
  });

  test('every policy of the network selects the pods of one workload or Job', async () => {
    const all = await manifests({ ci });
    const workloads = [...workloadsOf(all), ...ofKind(all, 'Job')];
    const policies = ofKind(all, 'NetworkPolicy');
    for (const { spec: policy } of policies) {
      const { matchLabels } = policy.podSelector;
      expect(
        workloads.filter(({ spec }) => matches(matchLabels, spec.template.metadata.labels)),
      ).toHaveLength(1);
    }
    // In closed networks, pods without a policy reach nothing.
    if (policies.length > 0) expect(policies).toHaveLength(workloads.length);
  });

  test('every budget and spread constraint selects one workload', async () => {
    const all = await manifests({ ci });
    const workloads = workloadsOf(all);
    const selectors = [
      ...ofKind(all, 'PodDisruptionBudget').map(({ spec }) => spec.selector.matchLabels),
      ...workloads.flatMap(({ spec }) =>
        (spec.template.spec.topologySpreadConstraints ?? []).map(
          (constraint: Manifest) => constraint.labelSelector.matchLabels,
        ),
      ),
    ];
    for (const selector of selectors) {
      expect(workloads.filter(({ spec }) => matches(selector, spec.template.metadata.labels))).toHaveLength(
        1,
      );
    }
  });

  test('every autoscaler has one Deployment, which leaves the number of replicas to it', async () => {
    const all = await manifests({ ci });
    for (const { spec } of ofKind(all, 'HorizontalPodAutoscaler')) {
      const { kind, name } = spec.scaleTargetRef;
      const scaled = ofKind(all, kind).filter(({ metadata }) => metadata.name === name);
      expect(scaled).toHaveLength(1);
      expect(scaled[0].spec).not.toHaveProperty('replicas');
    }
  });

  test('every volume that is mounted exists, and every one that exists is mounted', async () => {
    for (const { spec } of workloadsOf(await manifests({ ci }))) {
      const [container] = spec.template.spec.containers;
      expect((container.volumeMounts ?? []).map(({ name }: Manifest) => name).sort()).toEqual(
        (spec.template.spec.volumes ?? []).map(({ name }: Manifest) => name).sort(),
      );
    }
  });
});

test('the highly available values keep two replicas through a drain', async () => {
  const all = await manifests({ ci: 'ha-values.yaml' });

  expect(only(all, 'Deployment').spec.replicas).toBe(3);
  expect(only(all, 'PodDisruptionBudget').spec.minAvailable).toBe(2);
});

test('the PodMonitor finds sidecars by the port that the sidecar has', async () => {
  const monitor = only(await manifests({ set: ['monitoring.podMonitor.enabled=true'] }), 'PodMonitor');

  expect(monitor.spec.namespaceSelector).toEqual({ any: true });
  expect(monitor.spec.podMetricsEndpoints[0]).toMatchObject({ port: 'token-admin', path: '/metrics' });
});
