import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { INJECTOR_GROUPS } from '../../scripts/monitoring/injector-rules.ts';
import { ISSUER_GROUPS } from '../../scripts/monitoring/issuer-rules.ts';
import type { AlertingRule } from '../../scripts/monitoring/rule-groups.ts';
import { SIDECAR_GROUPS } from '../../scripts/monitoring/sidecar-rules.ts';
import { ALERT_CASES, type AlertCase } from './alert-cases.ts';
import { ROOT, run } from './tools.ts';

const RULES = `${ROOT}deploy/monitoring/rules.yaml`;

const ALERTS: readonly AlertingRule[] = [...SIDECAR_GROUPS, ...INJECTOR_GROUPS, ...ISSUER_GROUPS]
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
    await writeFile(
      join(directory, 'test.yaml'),
      stringify({
        rule_files: [RULES],
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
