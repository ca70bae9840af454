import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { METRIC_PREFIX, METRICS, type Metric } from '../../scripts/monitoring/metrics.ts';
import { issueCertificate } from '../../src/injector/certificate/certificate-authority.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { type RunningProgram, start } from './child-process.ts';
import { annotationQueries, dashboardQueries, filtersOf, ruleQueries, variableQueries } from './queries.ts';
import { pathOf, ROOT } from './tools.ts';

/** Queries are asked again until they have data: two scrapes and two evaluations after the last event, seconds apart. */
const PATIENCE_MS = 90_000;

/** Prometheus tells nobody when it has scraped, so it is asked, twice a scrape. */
const ASK_AGAIN_MS = 500;

const MAIN = `${ROOT}src/main.ts`;

let directory: string;
const programs: RunningProgram[] = [];
let admins: {
  healthy: string;
  rejected: string;
  issuer: string;
  injector: string;
  broker: string;
  gateway: string;
};
let prometheus: string;

function run(command: string, args: readonly string[]): RunningProgram {
  const program = start(command, args);
  programs.push(program);
  return program;
}

/** The issuer, as itself. */
async function startIssuer(): Promise<{ admin: string; tokenUrl: string }> {
  const clients = join(directory, 'clients.yaml');
  await writeFile(
    clients,
    stringify({ clients: [{ clientId: 'shop', clientSecret: 'the-right-one-0123456789' }] }),
  );
  const issuer = run(process.execPath, [
    MAIN,
    'issuer',
    '--listen',
    '127.0.0.1:0',
    '--admin-listen',
    '127.0.0.1:0',
    '--clients-file',
    clients,
  ]);
  const [, line] = await issuer.output(/^(\{.*"msg":"ready".*\})$/);
  const { admin, tokenUrl } = JSON.parse(line ?? '') as { admin: string; tokenUrl: string };
  return { admin, tokenUrl };
}

/** A sidecar whose requests pass, whose tokens are renewed every few seconds, and whose secret rotates. */
async function startHealthySidecar(): Promise<string> {
  const ports = ['listen', 'admin-listen', 'issuer-listen', 'issuer-admin-listen', 'api-listen'];
  const demo = run(process.execPath, [
    MAIN,
    'demo',
    ...ports.flatMap((flag) => [`--${flag}`, '127.0.0.1:0']),
    '--token-lifetime',
    '12s',
    '--rotate-after',
    '5s',
  ]);
  const [, admin] = await demo.output(/its status page is on (\S+)\.$/);
  return admin ?? '';
}

/** A sidecar whose credentials the issuer rejects, and that trusts an authority of its own for its upstream. */
async function startRejectedSidecar(tokenUrl: string): Promise<string> {
  const credentials = join(directory, 'credentials');
  await mkdir(credentials);
  await writeFile(join(credentials, 'client_id'), 'shop');
  await writeFile(join(credentials, 'client_secret'), 'the-wrong-one');
  const caFile = join(directory, 'ca.crt');
  await writeFile(caFile, createCertificateAuthority('Upstreams').cert);
  const config = join(directory, 'rejected.yaml');
  await writeFile(
    config,
    stringify({
      credentials: [
        { name: 'default', tokenUrl, dir: credentials, output: { file: join(directory, 'token-of-shop') } },
      ],
      routes: [{ name: 'api', upstream: 'https://127.0.0.1:9', tls: { caFile } }],
    }),
  );
  const sidecar = run(process.execPath, [
    MAIN,
    'proxy',
    '--listen',
    '127.0.0.1:0',
    '--admin-listen',
    '127.0.0.1:0',
    '--config',
    config,
  ]);
  const [, admin] = await sidecar.output(/"admin":"([^"]+)"/);
  return admin ?? '';
}

/** The injector, with a certificate of files and without a cluster. */
async function startInjector(): Promise<string> {
  const certificates = join(directory, 'certificates');
  await mkdir(certificates);
  const hosts = ['token-sidecar-injector.token-sidecar.svc'];
  const { cert, key } = await issueCertificate({ hosts, nowMs: Date.now(), lifetimeMs: 90 * 86_400_000 });
  await writeFile(join(certificates, 'tls.crt'), cert);
  await writeFile(join(certificates, 'tls.key'), key);
  const injector = run(process.execPath, [
    MAIN,
    'injector',
    '--listen',
    '127.0.0.1:0',
    '--admin-listen',
    '127.0.0.1:0',
    '--tls-cert-file',
    join(certificates, 'tls.crt'),
    '--tls-key-file',
    join(certificates, 'tls.key'),
    '--drain-delay',
    '0s',
  ]);
  const [, admin] = await injector.output(/"admin":"([^"]+)"/);
  return admin ?? '';
}

/** The broker, before a cluster and a token cache that do not answer. */
async function startBroker(): Promise<string> {
  const certificates = join(directory, 'certificates');
  const kubeconfig = join(directory, 'kubeconfig');
  const nowhere = { name: 'nowhere', cluster: { server: 'https://127.0.0.1:9' } };
  const context = { cluster: 'nowhere', user: 'nobody', namespace: 'token-sidecar' };
  await writeFile(
    kubeconfig,
    stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [nowhere],
      users: [{ name: 'nobody', user: { token: 'none' } }],
      contexts: [{ name: 'nowhere', context }],
      'current-context': 'nowhere',
    }),
  );
  const cacheKey = join(directory, 'cache-key');
  await mkdir(cacheKey);
  await writeFile(join(cacheKey, 'current'), Buffer.alloc(32, 7).toString('base64'));
  const flags: Readonly<Record<string, string>> = {
    listen: '127.0.0.1:0',
    'admin-listen': '127.0.0.1:0',
    'tls-cert-file': join(certificates, 'tls.crt'),
    'tls-key-file': join(certificates, 'tls.key'),
    'secrets-dir': join(directory, 'secrets'),
    'cache-url': 'redis://127.0.0.1:9',
    'cache-key-dir': cacheKey,
    'drain-delay': '0s',
    kubeconfig,
  };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  const broker = run(process.execPath, [MAIN, 'broker', ...args]);
  const [, admin] = await broker.output(/"admin":"([^"]+)"/);
  return admin ?? '';
}

/** The gateway, by the files of the injector and the broker. */
async function startGateway(): Promise<string> {
  const certificates = join(directory, 'certificates');
  await writeFile(join(directory, 'token'), 'static-token-0123456789');
  const config = join(directory, 'gateway.yaml');
  await writeFile(
    config,
    stringify({
      credentials: [{ name: 'default', grant: 'static', dir: directory, static: { tokenFile: 'token' } }],
      routes: [{ name: 'api', upstream: 'https://127.0.0.1:9' }],
      gateway: {
        listen: '127.0.0.1:0',
        tls: { certFile: join(certificates, 'tls.crt'), keyFile: join(certificates, 'tls.key') },
        serviceAccountTokens: {},
        callers: [{ name: 'web', match: { serviceAccount: 'shop/web' }, allowedRoutes: ['api'] }],
      },
    }),
  );
  const gateway = run(process.execPath, [
    MAIN,
    'gateway',
    '--admin-listen',
    '127.0.0.1:0',
    '--config',
    config,
    '--kubeconfig',
    join(directory, 'kubeconfig'),
  ]);
  const [, admin] = await gateway.output(/"admin":"([^"]+)"/);
  return admin ?? '';
}

async function startPrometheus(): Promise<string> {
  const config = join(directory, 'prometheus.yaml');
  const target = (address: string, namespace: string, pod: string) => ({
    targets: [address],
    labels: { namespace, pod },
  });
  await writeFile(
    config,
    stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [`${ROOT}deploy/monitoring/rules.yaml`],
      scrape_configs: [
        {
          job_name: 'token-sidecar',
          static_configs: [
            target(admins.healthy, 'shop', 'healthy'),
            target(admins.rejected, 'shop', 'rejected'),
          ],
        },
        {
          job_name: 'token-sidecar-injector',
          static_configs: [target(admins.injector, 'token-sidecar', 'injector')],
        },
        {
          job_name: 'token-sidecar-broker',
          static_configs: [target(admins.broker, 'token-sidecar', 'broker')],
        },
        { job_name: 'gateways', static_configs: [target(admins.gateway, 'edge', 'gateway')] },
        { job_name: 'token-sidecar-issuer', static_configs: [target(admins.issuer, 'sso', 'issuer')] },
      ],
    }),
  );
  const server = run(pathOf('prometheus'), [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    '--web.listen-address=127.0.0.1:0',
  ]);
  const [, address] = await server.output(/msg="Listening on".* address=(127\.0\.0\.1:\d+)/);
  return address ?? '';
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'prometheus-scrape-'));
  const issuer = await startIssuer();
  admins = {
    issuer: issuer.admin,
    healthy: await startHealthySidecar(),
    rejected: await startRejectedSidecar(issuer.tokenUrl),
    injector: await startInjector(),
    // By the certificate of the injector.
    broker: await startBroker(),
    gateway: await startGateway(),
  };
  prometheus = await startPrometheus();
});

afterAll(async () => {
  await Promise.all(programs.map((program) => program.stop()));
  await rm(directory, { recursive: true });
});

async function hasData(query: string): Promise<boolean> {
  const response = await fetch(`http://${prometheus}/api/v1/query`, {
    method: 'POST',
    body: new URLSearchParams({ query }),
  });
  const answer = (await response.json()) as { status: string; error?: string; data?: { result: unknown[] } };
  if (answer.status !== 'success') throw new Error(`${query}: ${answer.error}`);
  return (answer.data?.result.length ?? 0) > 0;
}

/** The queries that are still without data when patience ends. */
async function withoutData(queries: readonly string[]): Promise<string[]> {
  const deadline = performance.now() + PATIENCE_MS;
  let missing = [...queries];
  for (;;) {
    for (const program of programs) program.assertRunning();
    const answers = await Promise.all(missing.map(async (query) => ({ query, found: await hasData(query) })));
    missing = answers.filter(({ found }) => !found).map(({ query }) => query);
    if (missing.length === 0 || performance.now() > deadline) return missing;
    await setTimeout(ASK_AGAIN_MS);
  }
}

test('every query of the dashboard returns data', { timeout: 2 * PATIENCE_MS }, async () => {
  const queries = await dashboardQueries();
  expect(queries.length).toBeGreaterThan(30);

  expect(await withoutData(queries)).toEqual([]);
});

test('the marks of the dashboard are asked for as Prometheus understands it', async () => {
  const queries = await annotationQueries();
  expect(queries).toHaveLength(1);

  for (const query of queries) await hasData(query);
});

test('every recording rule returns data', { timeout: 2 * PATIENCE_MS }, async () => {
  const recorded = (await ruleQueries())
    .filter((query) => !query.includes('kube_'))
    .flatMap((query) => query.match(/\w+:token_sidecar_\w+:\w+|token_sidecar:\w+(:\w+)?/g) ?? []);

  expect(await withoutData([...new Set(recorded)])).toEqual([]);
});

test('the alert on rejected credentials sees a sidecar whose credentials are rejected', {
  timeout: 2 * PATIENCE_MS,
}, async () => {
  const of = (alert: string) => `ALERTS{alertname="${alert}", pod="rejected", credential="default"}`;

  expect(await withoutData([of('TokenSidecarCredentialsRejected')])).toEqual([]);
  // One ticket says what is wrong.
  expect(await hasData(of('TokenSidecarTokenUnavailable'))).toBe(false);
});

test('no alert is raised for a sidecar that is well', async () => {
  expect(await hasData('token_sidecar_token_ready{pod="healthy"} == 1')).toBe(true);
  expect(await hasData('ALERTS{pod="healthy"}')).toBe(false);
});

/** Names, types and label names of an exposition in the Prometheus text format. */
function exposed(text: string): Map<string, { type: string; labels: Set<string> }> {
  const metrics = new Map(
    [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => [
      name,
      { type, labels: new Set<string>() },
    ]),
  );
  for (const [, name = '', labels = ''] of text.matchAll(/^(\w+)\{([^}]*)\}/gm)) {
    const metric = metrics.get(name) ?? metrics.get(name.replace(/_(bucket|sum|count)$/, ''));
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) if (label !== 'le') metric?.labels.add(label);
  }
  return metrics;
}

/** What Prometheus adds to every series of a target. */
const OF_TARGETS = ['namespace', 'pod', 'job', 'instance'];

test('every label that a query filters by is on the metric that it filters', {
  timeout: 2 * PATIENCE_MS,
}, async () => {
  const scraped = Object.keys(admins).map((pod) => `token_sidecar_build_info{pod="${pod}"}`);
  expect(await withoutData(scraped)).toEqual([]);
  const response = await fetch(
    `http://${prometheus}/api/v1/series?${new URLSearchParams({ 'match[]': '{__name__=~".*token_sidecar.*"}' })}`,
  );
  const { data } = (await response.json()) as { data: readonly Readonly<Record<string, string>>[] };
  const stored = new Map<string, Set<string>>();
  for (const { __name__: name = '', ...labels } of data) {
    stored.set(name, new Set([...(stored.get(name) ?? OF_TARGETS), ...Object.keys(labels)]));
  }
  /** What nothing has happened to is in no exposition; its labels are those of the list. */
  const labelsOf = (metric: string): ReadonlySet<string> => {
    const listed = (METRICS as Record<string, Metric>)[metric.slice(METRIC_PREFIX.length)];
    return stored.get(metric) ?? new Set([...OF_TARGETS, ...(listed?.labels ?? [])]);
  };
  const queries = [
    ...(await dashboardQueries()),
    ...(await annotationQueries()),
    ...(await variableQueries()),
    ...(await ruleQueries()),
  ];
  const filters = queries.flatMap(filtersOf).filter(({ metric }) => metric.includes('token_sidecar'));

  expect(filters.length).toBeGreaterThan(100);
  expect(stored.size).toBeGreaterThan(30);
  const idle = filters.filter(({ metric, label }) => !labelsOf(metric).has(label));
  expect([...new Set(idle.map(({ metric, label }) => `${metric}{${label}}`))]).toEqual([]);
});

test('the list of metrics is what the program exports: names, types and labels', async () => {
  const found = new Map<string, { type: string; labels: Set<string> }>();
  for (const admin of Object.values(admins)) {
    const text = await (await fetch(`http://${admin}/metrics`)).text();
    for (const [name, { type, labels }] of exposed(text)) {
      if (!name.startsWith(METRIC_PREFIX)) continue;
      found.set(name, { type, labels: new Set([...labels, ...(found.get(name)?.labels ?? [])]) });
    }
  }

  const listed = Object.entries(METRICS as Record<string, Metric>);
  expect([...found.keys()].sort()).toEqual(listed.map(([name]) => METRIC_PREFIX + name).sort());
  for (const [name, { type, labels }] of listed) {
    const metric = found.get(METRIC_PREFIX + name);
    expect(metric?.type, name).toBe(type);
    // A series with labels appears with its first event, which not every one of them sees here.
    for (const label of metric?.labels ?? []) expect(labels, name).toContain(label);
  }
});
