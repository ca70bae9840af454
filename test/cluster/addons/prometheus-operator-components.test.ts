import { afterAll, beforeAll, expect, it } from 'vitest';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { gatewayValues, provideGatewaySecrets } from '../support/gateway.ts';
import { clientSecret, installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { askingForSidecar, callingTemplate, type Pod, podsOf, readyPods } from '../support/workload.ts';
import {
  configurationOf,
  query,
  rules,
  type ScrapeConfig,
  startPrometheus,
  startPrometheusOperator,
  stopPrometheusOperator,
  type Target,
  targets,
} from './prometheus-operator.ts';

const SHOP = 'watched-components';
const PROMETHEUS = 'components';
const COMPONENTS = ['injector', 'issuer', 'broker', 'gateway'] as const;

/** By which the Prometheus below picks out what is meant for it. */
const TEAM = { team: 'components' };

const FOR_BOTH = { interval: '6s', scrapeTimeout: '4s', honorLabels: true, labels: TEAM, enabled: true };

/** Every setting of the monitors is another than the chart's own. */
const VALUES = {
  ...gatewayValues(SHOP),
  'crds.enabled': true,
  'injector.profiles.enabled': true,
  'broker.enabled': true,
  'broker.secrets': ['orders-oauth'],
  // The pod whose credentials are rejected is not restarted before its alert fires.
  'sidecar.startupSeconds': 900,
  'monitoring.podMonitor': {
    ...FOR_BOTH,
    namespaces: [SHOP],
    selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['app', 'rejected'] }] },
    metricRelabelings: [{ sourceLabels: ['__name__'], regex: 'process_.*', action: 'drop' }],
  },
  'monitoring.serviceMonitor': {
    ...FOR_BOTH,
    relabelings: [{ targetLabel: 'region', replacement: 'north' }],
    metricRelabelings: [{ targetLabel: 'tier', replacement: 'platform' }],
  },
  'monitoring.prometheusRule.enabled': true,
  'monitoring.prometheusRule.labels': TEAM,
};

const deployment = (app: string, annotations: Readonly<Record<string, string>> = {}): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: app, namespace: SHOP },
  spec: {
    selector: { matchLabels: { app } },
    template: callingTemplate(app, askingForSidecar(SHOP, annotations)),
  },
});

async function replicasOf(component: string): Promise<readonly string[]> {
  const { items } = await get<{ items: readonly Pod[] }>(
    ...(['pods', '-n', NAMESPACE, '-l', `app.kubernetes.io/component=${component}`] as const),
  );
  return namesOf(items.filter(({ metadata }) => metadata.deletionTimestamp === undefined));
}

const namesOf = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.name).sort();

const podsIn = (found: readonly Target[], job: string): string[] =>
  found
    .filter(({ labels }) => labels['job'] === job)
    .map(({ labels }) => labels['pod'] ?? '')
    .sort();

inCluster('the Prometheus operator, with every component of the chart,', () => {
  useShop(SHOP);
  beforeAll(async () => {
    await startPrometheusOperator();
    await provideGatewaySecrets(SHOP);
    await apply(clientSecret(NAMESPACE, 'first', 'orders-oauth'));
    await installChart(VALUES);
    const selected = { matchLabels: TEAM };
    await apply(
      clientSecret(SHOP, 'not-the-one', 'wrong-oauth'),
      deployment('app'),
      deployment('rejected', { 'token-sidecar.dev/secret': 'wrong-oauth' }),
      // Injected as well, and not selected.
      deployment('unwatched'),
      {
        apiVersion: 'monitoring.coreos.com/v1',
        kind: 'Prometheus',
        metadata: { name: PROMETHEUS, namespace: NAMESPACE },
        spec: {
          version: 'v3.5.0',
          replicas: 0,
          serviceMonitorSelector: selected,
          podMonitorSelector: selected,
          ruleSelector: selected,
          evaluationInterval: '5s',
        },
      },
    );
    await readyPods(SHOP, 'app', 1);
    await readyPods(SHOP, 'unwatched', 1);
  });
  afterAll(async () => {
    await kubectl('delete', 'prometheus', PROMETHEUS, '-n', NAMESPACE, '--ignore-not-found');
    // Before its kinds go, which Helm has to know to delete what is of them.
    await installChart();
    await stopPrometheusOperator();
  });

  it('has each setting of the monitors in the configuration', async () => {
    const monitors = [
      `podMonitor/${NAMESPACE}/${RELEASE}/`,
      ...COMPONENTS.map((component) => `serviceMonitor/${NAMESPACE}/${RELEASE}-${component}/`),
    ];
    const configuration = await configurationOf(NAMESPACE, PROMETHEUS, monitors);
    const scrapes: readonly ScrapeConfig[] = configuration.scrape_configs;
    expect(scrapes).toHaveLength(monitors.length);
    for (const scrape of scrapes) {
      expect(scrape, scrape.job_name).toMatchObject({
        scrape_interval: '6s',
        scrape_timeout: '4s',
        honor_labels: true,
        metrics_path: '/metrics',
        kubernetes_sd_configs: [
          { namespaces: { names: [scrape.job_name.startsWith('podMonitor/') ? SHOP : NAMESPACE] } },
        ],
      });
    }
    await startPrometheus(NAMESPACE, PROMETHEUS, configuration);
  });

  it('finds each replica of each component once, and only the pods that are selected, and all answer', async () => {
    const sidecars = namesOf([...(await podsOf(SHOP, 'app')), ...(await podsOf(SHOP, 'rejected'))]);
    await eventually('every target is there and up', 90, async () => {
      const found = await targets();
      const unwell = found.filter(({ health }) => health !== 'up');
      expect(unwell.map(({ scrapeUrl, lastError }) => [scrapeUrl, lastError])).toEqual([]);
      expect(podsIn(found, 'token-sidecar')).toEqual(sidecars);
      for (const component of COMPONENTS) {
        const replicas = await replicasOf(component);
        expect(replicas.length, component).toBeGreaterThan(0);
        expect(podsIn(found, `token-sidecar-${component}`), component).toEqual(replicas);
      }
      expect(found).toHaveLength(new Set(found.map(({ scrapeUrl }) => scrapeUrl)).size);
      return true;
    });
  });

  it('stores figures with the labels of the values, and without those that they drop', async () => {
    const ofReplicas = await eventually('every component has told its version', 60, async () => {
      const samples = await query('token_sidecar_build_info{job=~"token-sidecar-.+"}');
      return new Set(samples.map(({ metric }) => metric['job'])).size === COMPONENTS.length && samples;
    });
    for (const { metric } of ofReplicas) {
      expect(metric).toMatchObject({ namespace: NAMESPACE, region: 'north', tier: 'platform' });
    }
    expect(await query('{__name__=~"process_.+",job="token-sidecar-injector"}')).not.toEqual([]);
    expect(await query('{__name__=~"process_.+",job="token-sidecar"}')).toEqual([]);
    expect(await query('token_sidecar_token_ready{job="token-sidecar"} == 1')).toHaveLength(1);
  });

  it('evaluates the rules of every component, and one alert fires, for the pod whose credentials are rejected', async () => {
    const all = await eventually('all rules were evaluated', 60, async () => {
      const known = await rules();
      return known.length > 20 && known.every(({ health }) => health !== 'unknown') && known;
    });
    expect(all.filter(({ health }) => health !== 'ok')).toEqual([]);
    const names = all.map(({ name }) => name);
    for (const component of ['Injector', 'Issuer', 'Broker', 'Gateway']) {
      expect(names).toContain(`TokenSidecar${component}Down`);
    }
    const firing = await eventually('an alert fires', 200, async () => {
      const samples = await query('ALERTS{alertstate="firing"}');
      return samples.length > 0 && samples;
    });
    const [pod = ''] = namesOf(await podsOf(SHOP, 'rejected'));
    expect(firing.map(({ metric }) => metric)).toEqual([
      expect.objectContaining({ alertname: 'TokenSidecarCredentialsRejected', namespace: SHOP, pod }),
    ]);
  }, 300_000);
});
