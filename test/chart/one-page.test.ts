import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { ROOT, run } from './tools.ts';

const NAMESPACES = ['shop', 'billing', 'search', 'mail'];
const PODS = 100;

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'one-page-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A sample every 30 s. */
const STEP_SECONDS = 30;
const BREAKS_AT_SECONDS = 1800;
const ENDS_AT_SECONDS = 5400;

/** What a pod exports whose provider breaks: tokens of five minutes, each pod at its own moment. */
function podSeries(index: number) {
  const namespace = NAMESPACES[index % NAMESPACES.length];
  const labels = `namespace="${namespace}", pod="${namespace}-${index}", credential="default"`;
  const lastGrantAt = BREAKS_AT_SECONDS - ((index * 37) % 225);
  const losesAt = lastGrantAt + 300;
  const firstFailureAt = lastGrantAt + 225;
  const at = (name: string, value: (seconds: number) => number) => ({
    series: `token_sidecar_${name}{${labels}}`,
    values: Array.from({ length: ENDS_AT_SECONDS / STEP_SECONDS + 1 }, (_, step) =>
      value(step * STEP_SECONDS),
    ).join(' '),
  });
  return [
    at('token_ready', (seconds) => (seconds < losesAt ? 1 : 0)),
    at('credential_required', () => 1),
    at('credentials_usable', () => 1),
    at('token_expiry_timestamp_seconds', (seconds) => (seconds < lastGrantAt ? seconds + 250 : losesAt)),
    at('token_renewal_timestamp_seconds', (seconds) => seconds + 10),
    at('token_refresh_consecutive_failures', (seconds) =>
      seconds < firstFailureAt ? 0 : 1 + Math.floor((seconds - firstFailureAt) / 30),
    ),
  ];
}

test('at no moment of an hour without the provider does more than one page fire, by promtool', async () => {
  const directory = await temporaryDirectory();
  const firing = (severity: string, seconds: number, value: number) => ({
    eval_time: `${seconds}s`,
    expr: `count(ALERTS{alertstate="firing", severity="${severity}"}) or vector(0)`,
    exp_samples: [{ labels: '{}', value }],
  });
  const moments = Array.from({ length: ENDS_AT_SECONDS / 60 }, (_, minute) => minute * 60);
  // The first token is lost 75 s after the break; a share of 5 % a little later, and two minutes on it fires.
  const pagedFrom = 2040;
  await writeFile(
    join(directory, 'test.yaml'),
    stringify({
      rule_files: [`${ROOT}deploy/monitoring/rules.yaml`],
      evaluation_interval: '30s',
      tests: [
        {
          interval: `${STEP_SECONDS}s`,
          input_series: Array.from({ length: PODS }, (_, index) => podSeries(index)).flat(),
          promql_expr_test: [
            ...moments
              .filter((seconds) => seconds <= BREAKS_AT_SECONDS)
              .map((seconds) => firing('critical', seconds, 0)),
            ...moments
              .filter((seconds) => seconds >= pagedFrom)
              .map((seconds) => firing('critical', seconds, 1)),
            // A ticket for each pod, of one kind.
            firing('warning', ENDS_AT_SECONDS, PODS),
            {
              eval_time: `${ENDS_AT_SECONDS}s`,
              expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
              exp_samples: [
                { labels: '{alertname="TokenSidecarFleetWithoutTokens"}', value: 1 },
                { labels: '{alertname="TokenSidecarTokenUnavailable"}', value: PODS },
              ],
            },
          ],
        },
      ],
    }),
  );

  const { ok, stdout, stderr } = await run('promtool', ['test', 'rules', join(directory, 'test.yaml')]);

  expect(ok, stdout + stderr).toBe(true);
});

test('a pod with four bad credentials, and neither injector nor issuer: one ticket for each, and one page', async () => {
  const directory = await temporaryDirectory();
  const credentials = ['orders', 'mail', 'search', 'billing'];
  const at = (name: string, credential: string, values: string, labels = '') => ({
    series: `token_sidecar_${name}{namespace="shop", pod="shop-1", credential="${credential}"${labels}}`,
    values,
  });
  await writeFile(
    join(directory, 'test.yaml'),
    stringify({
      rule_files: [`${ROOT}deploy/monitoring/rules.yaml`],
      evaluation_interval: '30s',
      tests: [
        {
          interval: '30s',
          input_series: credentials.flatMap((credential) => [
            at('token_ready', credential, '0x60'),
            at('credential_required', credential, '1x60'),
            at('credentials_usable', credential, '1x60'),
            at('token_refresh_consecutive_failures', credential, '1+1x60'),
            at('token_refresh_total', credential, '1+1x60', ', result="rejected", reason="retry"'),
          ]),
          promql_expr_test: [
            {
              eval_time: '30m',
              expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
              exp_samples: [
                { labels: '{alertname="TokenSidecarFleetWithoutTokens"}', value: 1 },
                { labels: '{alertname="TokenSidecarCredentialsRejected"}', value: credentials.length },
              ],
            },
          ],
        },
      ],
    }),
  );

  const { ok, stdout, stderr } = await run('promtool', ['test', 'rules', join(directory, 'test.yaml')]);

  expect(ok, stdout + stderr).toBe(true);
});
