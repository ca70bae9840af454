/**
 * The Prometheus operator as a program of the node. It makes the configuration and the rules of a Prometheus; the
 * StatefulSet that it makes, too, has no image here, and Prometheus runs on the node with them instead.
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { parse, stringify } from 'yaml';
import { ADDRESSES, API_SERVER, bracketed } from '../node/addresses.ts';
import { inPki, kubeconfigOf, makeClient } from '../node/certificates.ts';
import { logOf, startDaemon, stopDaemon } from '../node/daemon.ts';
import { get, kubectl } from '../node/kubectl.ts';
import { STATE } from '../node/places.ts';
import { eventually, run } from '../node/run.ts';
import { ADDONS, addonProgram } from './programs.ts';

const OPERATOR = 'prometheus-operator';
const PROMETHEUS = 'prometheus';
const PORT = 9090;
const DIRECTORY = join(STATE, PROMETHEUS);
const RULES = join(DIRECTORY, 'rules');
const DEFINITIONS = ['podmonitors', 'servicemonitors', 'prometheusrules', 'prometheuses', 'probes'];
/** That it looks at all the same. */
const OTHERS = ['alertmanagers', 'alertmanagerconfigs', 'thanosrulers', 'prometheusagents', 'scrapeconfigs'];

export async function startPrometheusOperator(): Promise<void> {
  const { module, version } = ADDONS[OPERATOR];
  const downloaded = await run('go', ['mod', 'download', '-json', `${module}@${version}`]);
  const { Dir: source } = JSON.parse(downloaded) as { readonly Dir: string };
  for (const name of [...DEFINITIONS, ...OTHERS]) {
    const file = join(source, 'example/prometheus-operator-crd', `monitoring.coreos.com_${name}.yaml`);
    // Too long for the annotation by which `apply` knows what it applied before.
    await kubectl('apply', '--server-side', '-f', file);
  }
  await makeClient(OPERATOR, `/O=system:masters/CN=${OPERATOR}`);
  startDaemon(
    ...([OPERATOR, addonProgram(OPERATOR, 'cmd/operator'), `-apiserver=${API_SERVER}`] as const),
    ...[`-ca-file=${inPki('ca.crt')}`, `-cert-file=${inPki(`${OPERATOR}.crt`)}`],
    ...[`-key-file=${inPki(`${OPERATOR}.key`)}`, `-web.listen-address=${bracketed(ADDRESSES.node)}:8090`],
  );
}

/** Takes its definitions along, and so every monitor that is left. */
export async function stopPrometheusOperator(): Promise<void> {
  await stopDaemon(PROMETHEUS);
  await stopDaemon(OPERATOR);
  const definitions = [...DEFINITIONS, ...OTHERS].map((name) => `crd/${name}.monitoring.coreos.com`);
  await kubectl('delete', '--ignore-not-found', ...definitions);
}

export interface ScrapeConfig {
  readonly job_name: string;
  readonly scrape_interval?: string;
  readonly kubernetes_sd_configs?: readonly object[];
}

interface Configuration {
  readonly scrape_configs: readonly ScrapeConfig[];
  readonly rule_files?: readonly string[];
}

/** What the operator has made of the monitors that the Prometheus `name` selects, once these are in it. */
export function configurationOf(
  namespace: string,
  name: string,
  monitors: readonly string[],
): Promise<Configuration> {
  return eventually(`the configuration has ${monitors.join(', ')}`, 90, async () => {
    const { data } = await get<{ data: Readonly<Record<string, string>> }>(
      ...(['secret', `prometheus-${name}`, '-n', namespace] as const),
    );
    const text = gunzipSync(Buffer.from(data['prometheus.yaml.gz'] ?? '', 'base64')).toString('utf8');
    const configuration = parse(filledIn(text, name)) as Configuration;
    const jobs = (configuration.scrape_configs ?? []).map(({ job_name: job }) => job);
    return monitors.every((monitor) => jobs.some((job) => job.includes(monitor))) && configuration;
  });
}

/** What the reloader beside Prometheus in its pod does. */
function filledIn(text: string, name: string): string {
  return text.replaceAll('$(SHARD)', '0').replaceAll('$(POD_NAME)', `prometheus-${name}-0`);
}

/** Runs the real Prometheus by what the operator made, of which nothing changes but where its files and the API server are. */
export async function startPrometheus(
  namespace: string,
  name: string,
  configuration: Configuration,
): Promise<void> {
  mkdirSync(RULES, { recursive: true });
  const rules = await eventually('the operator has made the rules', 60, () =>
    get<{ data: Readonly<Record<string, string>> }>(
      ...(['configmap', `prometheus-${name}-rulefiles-0`, '-n', namespace] as const),
    ),
  );
  for (const [file, text] of Object.entries(rules.data)) writeFileSync(join(RULES, file), text);
  await makeClient(PROMETHEUS, `/O=system:masters/CN=${PROMETHEUS}`);
  const scrapes = configuration.scrape_configs.map((scrape) => ({
    ...scrape,
    // In a pod it would be the service account.
    kubernetes_sd_configs: scrape.kubernetes_sd_configs?.map((discovery) => ({
      ...discovery,
      kubeconfig_file: kubeconfigOf(PROMETHEUS),
    })),
  }));
  const file = join(DIRECTORY, 'prometheus.yaml');
  writeFileSync(
    file,
    stringify({ ...configuration, scrape_configs: scrapes, rule_files: [join(RULES, '*.yaml')] }),
  );
  startDaemon(
    ...([PROMETHEUS, addonProgram(PROMETHEUS, 'cmd/prometheus'), `--config.file=${file}`] as const),
    ...[`--storage.tsdb.path=${join(DIRECTORY, 'data')}`],
    `--web.listen-address=${bracketed(ADDRESSES.node)}:${PORT}`,
  );
  try {
    await eventually('Prometheus is ready', 60, () => ask('/-/ready'));
  } catch (error) {
    throw new Error(`Prometheus did not start: ${logOf(PROMETHEUS)}`, { cause: error });
  }
}

/** Its HTTP API, which the machine reaches on the node. */
async function ask(path: string): Promise<string> {
  const answer = await fetch(`http://${bracketed(ADDRESSES.node)}:${PORT}${path}`);
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.text();
}

async function api<Data>(path: string): Promise<Data> {
  return (JSON.parse(await ask(`/api/v1/${path}`)) as { readonly data: Data }).data;
}

export interface Target {
  readonly labels: Readonly<Record<string, string>>;
  readonly health: string;
  readonly lastError: string;
  readonly scrapeUrl: string;
}

export async function targets(): Promise<readonly Target[]> {
  const { activeTargets } = await api<{ activeTargets: readonly Target[] }>('targets?state=active');
  return activeTargets;
}

export interface Rule {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
}

export async function rules(): Promise<readonly Rule[]> {
  const { groups } = await api<{ groups: readonly { readonly rules: readonly Rule[] }[] }>('rules');
  return groups.flatMap((group) => group.rules);
}

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

export async function query(expression: string): Promise<readonly Sample[]> {
  const { result } = await api<{ result: readonly Sample[] }>(
    `query?query=${encodeURIComponent(expression)}`,
  );
  return result;
}
