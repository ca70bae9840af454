import { afterAll, beforeAll, expect, it } from 'vitest';
import { apply } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { askingForSidecar, callingTemplate, callsOn, type Pod, readyPods } from '../support/workload.ts';
import {
  configurationOf,
  query,
  rules,
  type ScrapeConfig,
  startPrometheus,
  startPrometheusOperator,
  stopPrometheusOperator,
  targets,
} from './prometheus-operator.ts';

const SHOP = 'watched';
const PROMETHEUS = 'operations';
const PODS = 3;

/** By which the Prometheus below picks out what is meant for it. */
const TEAM = { team: 'operations' };

const MONITORED = Object.fromEntries(
  ['podMonitor', 'serviceMonitor', 'prometheusRule'].flatMap((kind) => [
    [`monitoring.${kind}.enabled`, true],
    [`monitoring.${kind}.labels`, TEAM],
  ]),
);

const VALUES = {
  ...MONITORED,
  'monitoring.podMonitor.interval': '5s',
  'monitoring.serviceMonitor.interval': '5s',
  'monitoring.podMonitor.relabelings': [{ targetLabel: 'region', replacement: 'north' }],
};

inCluster('the Prometheus operator', () => {
  let scrapes: readonly ScrapeConfig[] = [];
  let pods: readonly Pod[] = [];

  useShop(SHOP);
  beforeAll(async () => {
    await startPrometheusOperator();
    await installChart(VALUES);
    const selected = { matchLabels: TEAM };
    await apply({
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'Prometheus',
      metadata: { name: PROMETHEUS, namespace: NAMESPACE },
      spec: {
        // The one that runs in place of the image.
        version: 'v3.5.0',
        replicas: 0,
        serviceMonitorSelector: selected,
        podMonitorSelector: selected,
        ruleSelector: selected,
        evaluationInterval: '5s',
      },
    });
    await apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'app', namespace: SHOP },
      spec: {
        replicas: PODS,
        selector: { matchLabels: { app: 'app' } },
        template: callingTemplate('app', askingForSidecar(SHOP)),
      },
    });
    pods = await readyPods(SHOP, 'app', PODS);
  });
  afterAll(async () => {
    await installChart();
    await stopPrometheusOperator();
  });

  it('makes a configuration of every monitor of the chart, with the settings of the values', async () => {
    const monitors = [
      `podMonitor/${NAMESPACE}/${RELEASE}/`,
      `serviceMonitor/${NAMESPACE}/${RELEASE}-injector/`,
      `serviceMonitor/${NAMESPACE}/${RELEASE}-issuer/`,
    ];
    const configuration = await configurationOf(NAMESPACE, PROMETHEUS, monitors);
    scrapes = configuration.scrape_configs;
    expect(scrapes).toHaveLength(monitors.length);
    expect(scrapes.map(({ scrape_interval: interval }) => interval)).toEqual(['5s', '5s', '5s']);
    await startPrometheus(NAMESPACE, PROMETHEUS, configuration);
  });

  it('finds each sidecar and each replica, once, and all of them answer', async () => {
    const found = await eventually('all targets are up', 90, async () => {
      const active = await targets();
      const jobs = new Set(active.map(({ labels }) => labels['job']));
      return jobs.size === 3 && active.every(({ health }) => health === 'up') && active;
    });
    const of = (job: string) => found.filter(({ labels }) => labels['job'] === job);
    expect(
      of('token-sidecar')
        .map(({ labels }) => labels['pod'])
        .sort(),
    ).toEqual(pods.map(({ metadata }) => metadata.name).sort());
    for (const { labels } of of('token-sidecar')) {
      expect(labels).toMatchObject({ namespace: SHOP, container: 'token-sidecar', region: 'north' });
    }
    expect(of('token-sidecar-injector').length).toBeGreaterThanOrEqual(1);
    expect(of('token-sidecar-issuer')).toHaveLength(1);
  });

  it('has each sidecar’s figures by its pod and namespace', async () => {
    await callsOn(pods[0] as Pod, 5);
    const renewed = await eventually('every pod has renewed a token', 60, async () => {
      const samples = await query('token_sidecar_token_refresh_total{result="success",job="token-sidecar"}');
      const of = new Set(samples.map(({ metric }) => metric['pod']));
      return of.size === PODS && samples;
    });
    for (const { metric, value } of renewed) {
      expect(metric['namespace']).toBe(SHOP);
      expect(Number(value[1])).toBeGreaterThanOrEqual(1);
    }
  });

  it('evaluates every rule of the chart, and no alert stands for what is well', async () => {
    const all = await eventually('all rules were evaluated', 90, async () => {
      const known = await rules();
      return known.length > 20 && known.every(({ health }) => health !== 'unknown') && known;
    });
    expect(all.filter(({ health }) => health !== 'ok')).toEqual([]);
    expect(await query('ALERTS{alertstate="firing"}')).toEqual([]);
  });
});
