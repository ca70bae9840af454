import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { answer, answerToken, ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { program, startAlertmanager } from './alertmanager.ts';
import { type SimulatedFleet, startFleet } from './simulated-fleet.ts';
import { pathOf, ROOT } from './tools.ts';

const NAMESPACES = ['shop', 'billing', 'search', 'mail'];
const PODS = 100;
/** So short that the test need not wait long for the end of what is held. */
const LIFETIME_SECONDS = 12;

interface RuleFile {
  readonly groups: readonly { readonly rules: readonly { for?: string }[] }[];
}

interface Notification {
  readonly receiver: string;
  readonly status: 'firing' | 'resolved';
  readonly alerts: readonly { readonly status: string; readonly labels: Readonly<Record<string, string>> }[];
}

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'one-page-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Whoever is woken: keeps what Alertmanager says, and tells who waits for it. */
async function startPager() {
  const notifications: Notification[] = [];
  let heard = () => {};
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    notifications.push(JSON.parse(Buffer.concat(chunks).toString('utf8')) as Notification);
    response.end();
    heard();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    notifications,
    async until(condition: () => boolean): Promise<void> {
      while (!condition()) {
        await new Promise<void>((resolve) => {
          heard = resolve;
        });
      }
    },
  };
}

/** The shipped rules with a second for each minute that a condition has to last. */
async function impatientRules(directory: string): Promise<string> {
  const rules = parse(await readFile(`${ROOT}deploy/monitoring/rules.yaml`, 'utf8')) as RuleFile;
  for (const rule of rules.groups.flatMap((group) => group.rules)) {
    if (rule.for !== undefined) rule.for = rule.for.replace('m', 's');
  }
  const file = join(directory, 'rules.yaml');
  await writeFile(file, stringify(rules));
  return file;
}

/** It finds the pods by a job of any name, as one that goes by annotations has it. */
async function startPrometheus(
  directory: string,
  fleet: SimulatedFleet,
  alertmanager: string,
): Promise<string> {
  const config = join(directory, 'prometheus.yaml');
  await writeFile(
    config,
    stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [await impatientRules(directory)],
      alerting: { alertmanagers: [{ static_configs: [{ targets: [alertmanager] }] }] },
      scrape_configs: [
        {
          job_name: 'kubernetes-pods',
          static_configs: fleet.pods.map(({ namespace, pod, path }) => ({
            targets: [fleet.address],
            labels: { namespace, pod, __metrics_path__: path, instance: pod },
          })),
        },
      ],
    }),
  );
  const { output } = program(pathOf('prometheus'), [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    '--web.listen-address=127.0.0.1:0',
  ]);
  const [, address] = await output(/msg="Listening on".* address=(127\.0\.0\.1:\d+)/);
  return address ?? '';
}

test('a provider that breaks under a hundred sidecars wakes once, and is told when it is over', {
  timeout: 180_000,
}, async () => {
  const directory = await temporaryDirectory();
  const provider = await ScriptedTokenEndpoint.start(answerToken({ expires_in: LIFETIME_SECONDS }));
  const fleet = await startFleet(provider.url, PODS, NAMESPACES);
  const pager = await startPager();
  const alertmanager = await startAlertmanager(directory, pager.url);
  await startPrometheus(directory, fleet, alertmanager);

  // All is well for longer than a token lives: everything has been renewed, and nothing is said.
  await provider.requests(2 * PODS);
  expect(pager.notifications).toEqual([]);

  provider.script = answer(503, 'down for maintenance');
  const pages = () => pager.notifications.filter(({ receiver }) => receiver === 'page');
  await pager.until(() => pages().length > 0);
  // Every sidecar has asked in vain again and again meanwhile, and lost its token.
  await provider.requests(provider.received.length + 3 * PODS);
  // What follows from it, the page says too.
  const tickets = pager.notifications.filter(({ receiver }) => receiver === 'ticket');
  const ticketed = tickets.flatMap(({ alerts }) => alerts.map(({ labels }) => labels['alertname']));
  expect(ticketed).not.toContain('TokenSidecarTokenUnavailable');

  provider.script = answerToken({ expires_in: LIFETIME_SECONDS });
  await pager.until(() => pages().some(({ status }) => status === 'resolved'));

  const paged = pages().map(({ status, alerts }) => ({
    status,
    alerts: alerts.map(({ labels }) => labels['alertname']),
  }));
  expect(paged).toEqual([
    { status: 'firing', alerts: ['TokenSidecarFleetWithoutTokens'] },
    { status: 'resolved', alerts: ['TokenSidecarFleetWithoutTokens'] },
  ]);
});
