import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { monitoringFiles } from '../../scripts/generate-monitoring.ts';
import { brokerGroups } from '../../scripts/monitoring/broker-rules.ts';
import { gatewayGroups } from '../../scripts/monitoring/gateway-rules.ts';
import { injectorGroups } from '../../scripts/monitoring/injector-rules.ts';
import { issuerGroups } from '../../scripts/monitoring/issuer-rules.ts';
import { exportedSeriesNames } from '../../scripts/monitoring/metrics.ts';
import { SIDECAR_GROUPS } from '../../scripts/monitoring/sidecar-rules.ts';
import { manifests, only } from './manifests.ts';
import { dashboardQueries, ruleQueries } from './queries.ts';
import { ROOT } from './tools.ts';

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert?: string;
      readonly record?: string;
      readonly labels?: { severity: string };
    }[];
  }[];
}

const rules = parse(await readFile(`${ROOT}deploy/monitoring/rules.yaml`, 'utf8')) as Rules;
const allRules = rules.groups.flatMap((group) => group.rules);

test.each([...monitoringFiles()])('%s is what its sources make', async (path, content) => {
  expect(await readFile(`${ROOT}${path}`, 'utf8'), 'run node scripts/generate-monitoring.ts').toBe(content);
});

test('every query names only metrics of the list and series that a rule records', async () => {
  const recorded = allRules.flatMap(({ record }) => record ?? []);
  const known = new Set([...exportedSeriesNames(), ...recorded]);
  const named = [...(await dashboardQueries()), ...(await ruleQueries())].flatMap(
    (query) => query.match(/[a-z_:]*token_sidecar[a-z0-9_:]*/g) ?? [],
  );

  expect(named.length).toBeGreaterThan(50);
  // A label of kube-state-metrics, made from the annotation's name.
  const unknown = named.filter((name) => !known.has(name) && name !== 'annotation_token_sidecar_dev_inject');
  expect([...new Set(unknown)]).toEqual([]);
});

test('every metric of the list is shown on the dashboard', async () => {
  const queries = (await dashboardQueries()).join('\n');
  const shown = [...exportedSeriesNames()].filter((name) => !/_(sum|count)$/.test(name));

  expect(shown.filter((name) => !queries.includes(name))).toEqual([]);
});

test('no panel of the dashboard lies on another or shares its id', async () => {
  interface Placed {
    readonly id: number;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly panels?: readonly Placed[];
  }
  const { panels } = JSON.parse(await readFile(`${ROOT}deploy/monitoring/dashboard.json`, 'utf8')) as {
    panels: readonly Placed[];
  };
  const all = panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);

  for (const list of [panels, ...panels.map((row) => row.panels ?? [])]) {
    for (const [index, { title, gridPos: a }] of list.entries()) {
      expect(a.x + a.w, title).toBeLessThanOrEqual(24);
      for (const { title: other, gridPos: b } of list.slice(index + 1)) {
        const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
        expect(apart, `${title} and ${other}`).toBe(true);
      }
    }
  }
});

test('every alert has a runbook and every runbook an alert', async () => {
  const alerts = allRules.flatMap(({ alert }) => alert ?? []);
  const pages = (await readdir(`${ROOT}docs/runbooks`)).filter((file) => file !== 'README.md');

  expect(pages.map((file) => file.replace('.md', '')).sort()).toEqual(alerts.toSorted());
});

test('every alert about what the dashboard shows is linked from there', async () => {
  interface Linking {
    readonly links?: readonly { readonly url: string }[];
    readonly panels?: readonly Linking[];
  }
  const { panels } = JSON.parse(await readFile(`${ROOT}deploy/monitoring/dashboard.json`, 'utf8')) as {
    panels: readonly Linking[];
  };
  const all = panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
  const linked = all.flatMap(({ links }) => links ?? []).map(({ url }) => /(\w+)\.md$/.exec(url)?.[1]);

  expect([...new Set(linked)].sort()).toEqual(allRules.flatMap(({ alert }) => alert ?? []).sort());
});

test.each(allRules.filter(({ alert }) => alert !== undefined))(
  'the runbook of $alert states its severity',
  async ({ alert, labels }) => {
    const page = await readFile(`${ROOT}docs/runbooks/${alert}.md`, 'utf8');

    expect(page).toMatch(new RegExp(`^# ${alert}\n\nSeverity: ${labels?.severity}\n`));
    for (const heading of ['What it means for users', 'What to look at', 'What to do']) {
      expect(page).toContain(`## ${heading}`);
    }
  },
);

test('links between runbooks lead somewhere', async () => {
  const pages = await readdir(`${ROOT}docs/runbooks`);
  for (const page of pages) {
    const text = await readFile(`${ROOT}docs/runbooks/${page}`, 'utf8');
    for (const [, target] of text.matchAll(/\]\(([\w.]+\.md)\)/g)) expect(pages).toContain(target);
  }
});

test('the chart carries the rules of what it installs, and the dashboard', async () => {
  const set = [
    'monitoring.prometheusRule.enabled=true',
    'monitoring.dashboard.enabled=true',
    'issuer.enabled=true',
    'issuer.clients.secrets={a}',
    'broker.enabled=true',
    'broker.secrets={a}',
    'injector.enabled=true',
    'injector.profiles.enabled=true',
  ];
  const all = await manifests({ ci: 'gateway-values.yaml', set });

  expect(only(all, 'PrometheusRule').spec.groups).toEqual([
    ...SIDECAR_GROUPS,
    ...injectorGroups('installed'),
    ...issuerGroups('installed'),
    ...brokerGroups('installed'),
    ...gatewayGroups('installed', { namespace: 'token-sidecar', name: 'token-sidecar-gateway' }),
  ]);
  const board = all.find(
    ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-dashboard'),
  );
  expect(JSON.parse(board.data['token-sidecar.json'])).toEqual(
    JSON.parse(await readFile(`${ROOT}deploy/monitoring/dashboard.json`, 'utf8')),
  );
});

test('the chart leaves out the rules of what it does not install', async () => {
  const names = async (...set: string[]) =>
    only(
      await manifests({ set: ['monitoring.prometheusRule.enabled=true', ...set] }),
      'PrometheusRule',
    ).spec.groups.map(({ name }: { name: string }) => name);

  expect(await names()).toEqual(['token-sidecar.sidecar', 'token-sidecar.injector']);
  expect(await names('injector.enabled=false')).toEqual(['token-sidecar.sidecar']);
});

test('the job names of the rules are those that the monitors set', async () => {
  const set = [
    'monitoring.podMonitor.enabled=true',
    'monitoring.serviceMonitor.enabled=true',
    'issuer.enabled=true',
    'issuer.clients.secrets={a}',
    'broker.enabled=true',
    'broker.secrets={a}',
    'injector.profiles.enabled=true',
  ];
  const jobs = (await manifests({ set }))
    .flatMap(({ spec }) => [...(spec?.podMetricsEndpoints ?? []), ...(spec?.endpoints ?? [])])
    .flatMap(({ relabelings }) => relabelings)
    .filter(({ targetLabel }) => targetLabel === 'job')
    .map(({ replacement }) => replacement);

  const queried = (await ruleQueries()).flatMap((query) =>
    [...query.matchAll(/job="([^"]+)"/g)].map((match) => match[1]),
  );
  expect([...new Set(queried)].sort()).toEqual(jobs.sort());
});
