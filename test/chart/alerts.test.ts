import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { brokerGroups } from '../../scripts/monitoring/broker-rules.ts';
import { CHART_GATEWAY, gatewayGroups } from '../../scripts/monitoring/gateway-rules.ts';
import { injectorGroups } from '../../scripts/monitoring/injector-rules.ts';
import { issuerGroups } from '../../scripts/monitoring/issuer-rules.ts';
import type { AlertingRule } from '../../scripts/monitoring/rule-groups.ts';
import { SIDECAR_GROUPS } from '../../scripts/monitoring/sidecar-rules.ts';
import { ALERT_CASES, type AlertCase } from './alert-cases.ts';
import { ROOT, run } from './tools.ts';

const RULES = `${ROOT}deploy/monitoring/rules.yaml`;

/** What the chart has Prometheus load where this part is installed. */
const chartRules = (part: NonNullable<AlertCase['ofChart']>) =>
  `${ROOT}charts/token-sidecar/files/rules-${part}.yaml`;

const ALERTS: readonly AlertingRule[] = [
  ...SIDECAR_GROUPS,
  ...gatewayGroups('perhaps'),
  ...injectorGroups('perhaps'),
  ...issuerGroups('perhaps'),
  ...brokerGroups('perhaps'),
]
  .flatMap(({ rules }) => rules)
  .filter((rule) => 'alert' in rule);

async function testRules(alertCase: AlertCase) {
  const rule = ALERTS.find(({ alert }) => alert === alertCase.alert);
  if (rule === undefined) throw new Error(`there is no alert ${alertCase.alert}`);
  const { fires } = alertCase;
  const expected = fires && {
    exp_labels: { ...rule.labels, ...fires.labels },
    exp_annotations: { ...rule.annotations, description: fires.description },
  };
  const directory = await mkdtemp(join(tmpdir(), 'alerts-'));
  try {
    if (alertCase.ofChart !== undefined) {
      const text = await readFile(chartRules(alertCase.ofChart), 'utf8');
      const groups = parse(
        text.replaceAll(CHART_GATEWAY.namespace, 'edge').replaceAll(CHART_GATEWAY.name, 'edge-gateway'),
      );
      await writeFile(join(directory, 'rules.yaml'), stringify({ groups }));
    }
    await writeFile(
      join(directory, 'test.yaml'),
      stringify({
        rule_files: [alertCase.ofChart === undefined ? RULES : join(directory, 'rules.yaml')],
        evaluation_interval: '30s',
        tests: [
          {
            interval: '30s',
            input_series: alertCase.input,
            alert_rule_test: [
              {
                eval_time: `${alertCase.atSeconds}s`,
                alertname: alertCase.alert,
                exp_alerts: expected ? [expected] : [],
              },
            ],
          },
        ],
      }),
    );
    return await run('promtool', ['test', 'rules', join(directory, 'test.yaml')]);
  } finally {
    await rm(directory, { recursive: true });
  }
}

test('promtool finds nothing wrong with the rules', async () => {
  const { ok, stdout, stderr } = await run('promtool', [
    'check',
    'rules',
    '--lint=all',
    '--lint-fatal',
    RULES,
  ]);

  expect(ok, stdout + stderr).toBe(true);
});

test.each(ALERTS.map(({ alert }) => alert))('%s is tried both ways', (alert) => {
  const cases = ALERT_CASES.filter((alertCase) => alertCase.alert === alert);

  expect(cases.some(({ fires }) => fires !== undefined)).toBe(true);
  expect(cases.some(({ fires }) => fires === undefined)).toBe(true);
});

describe('fires when', () => {
  const firing = ALERT_CASES.filter(({ fires }) => fires !== undefined);
  test.each(firing.map((alertCase) => [`${alertCase.alert}: ${alertCase.when}`, alertCase] as const))(
    '%s',
    async (_, alertCase) => {
      const { ok, stdout, stderr } = await testRules(alertCase);
      expect(ok, stdout + stderr).toBe(true);
    },
  );
});

describe('is silent when', () => {
  const silent = ALERT_CASES.filter(({ fires }) => fires === undefined);
  test.each(silent.map((alertCase) => [`${alertCase.alert}: ${alertCase.when}`, alertCase] as const))(
    '%s',
    async (_, alertCase) => {
      const { ok, stdout, stderr } = await testRules(alertCase);
      expect(ok, stdout + stderr).toBe(true);
    },
  );
});
