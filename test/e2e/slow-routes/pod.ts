/** In the pod: asks everything at the other end of the wire, as the product does. Prints what came of it as JSON. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Registry } from '@prometheus-io/client';
import { createCacheMetrics } from '../../../src/broker/cache/metrics.ts';
import { openRedisStore } from '../../../src/broker/cache/redis-store.ts';
import { messageOf } from '../../../src/platform/errors.ts';
import { connectKubernetes } from '../../../src/platform/kubernetes/client.ts';
import { createLogger } from '../../../src/platform/log/logger.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { FAR, type Naming, type Outcome, PORTS } from './surroundings.ts';

const MAIN = join(import.meta.dirname, '../../../src/main.ts');
const [directory = '', naming] = process.argv.slice(2) as [string, Naming];
const at = (name: keyof typeof PORTS): string => `${name}.example.com${naming === 'absolute' ? '.' : ''}`;
const addressOf = (name: keyof typeof PORTS): string => `${at(name)}:${PORTS[name]}`;
const caFile = join(directory, 'ca.crt');
const config = join(directory, 'sidecar.json');

async function writeFiles(): Promise<void> {
  const dir = join(directory, 'credentials');
  await mkdir(dir);
  await writeFile(join(dir, 'client_id'), 'shop');
  await writeFile(join(dir, 'client_secret'), 'secret');
  const issuerUrl = `https://${addressOf('idp')}`;
  const egressProxy = { url: `http://${addressOf('proxy')}` };
  const tls = { caFile };
  const upstream = `https://${addressOf('api')}`;
  const routes = [
    { name: 'direct', match: { pathPrefix: '/direct' }, upstream, credential: 'direct', tls },
    { name: 'through', match: { pathPrefix: '/through' }, upstream, credential: 'through', tls, egressProxy },
  ];
  const credentials = [
    { name: 'direct', issuerUrl, dir, tls },
    { name: 'through', tokenUrl: `${issuerUrl}/token`, dir, tls, egressProxy },
  ];
  const listen = '127.0.0.1:0';
  await writeFile(config, JSON.stringify({ listen, admin: { listen }, credentials, routes }));
}

/** How long TCP takes to the other end. */
async function timeRoundTrip(): Promise<number> {
  const startedAtMs = performance.now();
  const socket = connect(PORTS.proxy, FAR.ipv4);
  await once(socket, 'connect');
  socket.destroy();
  return Math.round(performance.now() - startedAtMs);
}

async function askAsApp(): Promise<Pick<Outcome, 'direct' | 'through'>> {
  const child = spawn(process.execPath, [MAIN, 'proxy', '--config', config], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `https://${addressOf('collector')}`,
      OTEL_EXPORTER_OTLP_CERTIFICATE: caFile,
      OTEL_BSP_SCHEDULE_DELAY: '100',
    },
  });
  let log = '';
  let failed: string | undefined;
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    log += chunk;
    failed = /"detail":"([^"]*)".*"msg":"no token obtained"/.exec(log)?.[1];
    if (failed !== undefined || log.includes('"msg":"ready"')) break;
  }
  const { proxy } = JSON.parse(/^.*"msg":"listening".*$/m.exec(log)?.[0] ?? '{}');
  const ask = async (path: string): Promise<string> => {
    if (failed !== undefined) return failed;
    const response = await fetch(`http://${proxy}${path}`);
    return `${response.status} ${await response.text()}`;
  };
  const answered = { direct: await ask('/direct'), through: await ask('/through') };
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
  return answered;
}

async function check(): Promise<string> {
  const args = [MAIN, 'check', '--config', config];
  return promisify(execFile)(process.execPath, args).then(
    () => '0',
    ({ code, stdout, stderr }) => `${code}: ${stdout}${stderr}`,
  );
}

async function askCluster(): Promise<string> {
  const file = join(directory, 'kubeconfig');
  const kubeconfig = {
    clusters: [
      {
        name: 'c',
        cluster: { server: `https://${addressOf('cluster')}`, 'certificate-authority': caFile },
      },
    ],
    users: [{ name: 'u', user: { token: 'of-an-account' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  await writeFile(file, JSON.stringify(kubeconfig));
  return connectKubernetes(file, systemClock)
    .request('GET', '/version')
    .then(() => 'answered', messageOf);
}

async function askCache(): Promise<string> {
  let said = '';
  const store = openRedisStore({
    address: { host: at('cache'), port: PORTS.cache, tls: true },
    access: () => ({ authorities: readFileSync(caFile, 'utf8') }),
    timeoutMs: 2000,
    clock: systemClock,
    random: () => 0,
    metrics: createCacheMetrics(new Registry()),
    log: createLogger('warn', { write: (line) => (said = line) }),
  });
  await store.tried;
  const outcome = store.isConnected() ? 'connected' : said;
  await store.close();
  return outcome;
}

await writeFiles();
const outcome: Omit<Outcome, 'spans'> = {
  roundTripMs: await timeRoundTrip(),
  ...(await askAsApp()),
  check: await check(),
  cluster: await askCluster(),
  cache: await askCache(),
};
process.stdout.write(JSON.stringify(outcome), () => process.exit());
