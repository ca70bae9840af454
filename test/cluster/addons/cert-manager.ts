/**
 * cert-manager as its own chart installs it, with its accounts, rights, definitions and webhooks. Its Deployments have no
 * replicas, because no image is there: its three programs run on the node, each with a token of its account.
 */

import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ADDRESSES, API_SERVER, FAMILIES } from '../node/addresses.ts';
import { inPki, kubeconfigOf } from '../node/certificates.ts';
import { logOf, startDaemon, stopDaemon } from '../node/daemon.ts';
import { apply, create, helm, kubectl } from '../node/kubectl.ts';
import { STATE } from '../node/places.ts';
import { eventually, run } from '../node/run.ts';
import { ADDONS, addonProgram } from './programs.ts';

/** Where its programs would be, and where Secrets of ClusterIssuers are. */
export const CERT_MANAGER_NAMESPACE = 'cert-manager';

const RELEASE = 'cert-manager';
const CHART = join(STATE, 'cert-manager-chart');
/** The kubelet has the port of cert-manager's chart. */
const WEBHOOK_PORT = 10_260;

/** By the name of the account. */
const PROGRAMS = {
  'cert-manager': [
    'cmd/controller',
    '--leader-elect=false',
    `--cluster-resource-namespace=${CERT_MANAGER_NAMESPACE}`,
  ],
  'cert-manager-cainjector': ['cmd/cainjector', '--leader-elect=false'],
  'cert-manager-webhook': [
    'cmd/webhook',
    `--secure-port=${WEBHOOK_PORT}`,
    `--dynamic-serving-ca-secret-namespace=${CERT_MANAGER_NAMESPACE}`,
    '--dynamic-serving-ca-secret-name=cert-manager-webhook-ca',
    `--dynamic-serving-dns-names=cert-manager-webhook.${CERT_MANAGER_NAMESPACE}.svc`,
  ],
} as const;

/** Installs and starts it, and waits until its webhook admits an Issuer. */
export async function startCertManager(): Promise<void> {
  await makeChart();
  await helm(
    ...(['upgrade', '--install', RELEASE, CHART, '--namespace', CERT_MANAGER_NAMESPACE] as const),
    ...['--create-namespace', '--set', 'startupapicheck.enabled=false,replicaCount=0'],
    ...['--set', 'cainjector.replicaCount=0,webhook.replicaCount=0'],
  );
  await apply(webhookEndpoint());
  for (const [account, [program, ...args]] of Object.entries(PROGRAMS)) {
    const file = addonProgram('cert-manager', program);
    if (!existsSync(file)) throw new Error(`${file} is missing: run scripts/install-cluster-addons.ts`);
    await writeKubeconfig(account);
    startDaemon(account, file, `--kubeconfig=${kubeconfigOf(account)}`, ...args);
  }
  try {
    await eventually('cert-manager admits an Issuer', 60, () => create(selfSigned(), '--dry-run=server'));
  } catch (error) {
    const logs = Object.keys(PROGRAMS).map((name) => `${name}: ${logOf(name)}`);
    throw new Error(`cert-manager did not start\n${logs.join('\n')}`, { cause: error });
  }
}

/** Takes its definitions along, and so every Certificate that is left. */
export async function stopCertManager(): Promise<void> {
  for (const name of Object.keys(PROGRAMS)) await stopDaemon(name);
  await helm('uninstall', RELEASE, '--namespace', CERT_MANAGER_NAMESPACE, '--ignore-not-found', '--wait');
  await kubectl('delete', 'namespace', CERT_MANAGER_NAMESPACE, '--ignore-not-found', '--timeout=120s');
}

/** From the module, where the chart lacks what its release adds: its version and the definitions. */
async function makeChart(): Promise<void> {
  const { module, version } = ADDONS['cert-manager'];
  const downloaded = await run('go', ['mod', 'download', '-json', `${module}@${version}`]);
  const { Dir: source } = JSON.parse(downloaded) as { readonly Dir: string };
  rmSync(CHART, { recursive: true, force: true });
  cpSync(join(source, 'deploy/charts/cert-manager'), CHART, { recursive: true });
  cpSync(join(source, 'deploy/crds'), join(CHART, 'templates'), {
    recursive: true,
    filter: (file) => !file.endsWith('.md'),
  });
  const template = readFileSync(join(CHART, 'Chart.template.yaml'), 'utf8');
  writeFileSync(join(CHART, 'Chart.yaml'), template.replaceAll('v0.1.0', version));
}

async function writeKubeconfig(account: string): Promise<void> {
  const token = await kubectl('-n', CERT_MANAGER_NAMESPACE, 'create', 'token', account, '--duration=12h');
  const configuration = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: API_SERVER, 'certificate-authority': inPki('ca.crt') } }],
    users: [{ name: 'u', user: { token: token.trim() } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  };
  writeFileSync(kubeconfigOf(account), JSON.stringify(configuration));
}

/** Leads the webhook's Service to the node. */
function webhookEndpoint(): object {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'cert-manager-webhook-on-node',
      namespace: CERT_MANAGER_NAMESPACE,
      labels: { 'kubernetes.io/service-name': 'cert-manager-webhook' },
    },
    addressType: FAMILIES[0],
    ports: [{ name: 'https', port: WEBHOOK_PORT, protocol: 'TCP' }],
    endpoints: [{ addresses: [ADDRESSES.node], conditions: { ready: true } }],
  };
}

function selfSigned(): object {
  return {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Issuer',
    metadata: { name: 'anything', namespace: 'default' },
    spec: { selfSigned: {} },
  };
}
