/**
 * What the injector takes: reviews a second on one core, their latency at 500 a second, and memory; by files and with
 * the Kubernetes API. Run `npm run build` first; `node bench/injector/bench.ts [SECONDS]` writes results.md.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { issueCertificate } from '../../src/injector/certificate/certificate-authority.ts';
import { readShippedNode } from '../../test/support/shipped-node.ts';
import { shareOutCores } from '../cores.ts';
import { startPinned } from '../pinned-process.ts';
import { cpuSeconds, memoryOf } from '../process-figures.ts';
import { reviewBody } from './review-body.ts';

const ROOT = join(import.meta.dirname, '../..');
const HOST = 'injector.system.svc';
const RATE_PER_SECOND = 500;
const CONNECTIONS = 16;
const WARM_UP_SECONDS = 3;

interface Figures {
  readonly mode: string;
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Of the time at the fixed rate: how long it was ready to run and the core was another's. */
  readonly waitedFraction: number;
  readonly idleMb: number;
  readonly atRateMb: number;
  readonly atMostMb: number;
}

/** What the injector asks of the API server in the path of a review, and at its start. */
async function startApiServer(): Promise<{ readonly port: number; close(): void }> {
  const server = createServer((incoming, response) => {
    incoming.resume();
    const isVersion = incoming.url === '/version';
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(isVersion ? { major: '1', minor: '34' } : { kind: 'PartialObjectMetadata' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

async function measure(
  mode: string,
  settings: readonly string[],
  directory: string,
  ca: string,
  seconds: number,
): Promise<Figures> {
  const { flags, env } = await readShippedNode();
  const injector = startPinned({
    command: process.execPath,
    args: [
      ...flags,
      join(ROOT, 'dist/token-sidecar.js'),
      'injector',
      ...['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0', '--drain-delay', '0s'],
      ...['--tls-cert-file', join(directory, 'tls.crt'), '--tls-key-file', join(directory, 'tls.key')],
      ...settings,
    ],
    cores: cores.proxy,
    env,
  });
  try {
    const port = await listeningPort(injector.stdout);
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS, ca, servername: HOST });
    const body = reviewBody();
    const review = (): Promise<void> =>
      new Promise((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'content-length': body.length };
        const sent = request(
          { host: '127.0.0.1', port, path: '/mutate', method: 'POST', agent, headers },
          (response) => {
            if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
            response.resume().on('end', resolve);
          },
        );
        sent.on('error', reject);
        sent.end(body);
      });

    await new Promise((resolve) => setTimeout(resolve, 2000));
    const idleMb = megabytes(injector.pid);
    await atRate(review, WARM_UP_SECONDS);
    const waitedBefore = waitedSeconds(injector.pid);
    const latencies = await atRate(review, seconds);
    const waitedFraction = (waitedSeconds(injector.pid) - waitedBefore) / seconds;
    const atRateMb = megabytes(injector.pid);
    const before = cpuSeconds(injector.pid);
    const count = RATE_PER_SECOND * seconds;
    const startedAt = performance.now();
    await inTurns(review, count);
    const took = (performance.now() - startedAt) / 1000;
    const cpu = cpuSeconds(injector.pid) - before;
    const atMostMb = megabytes(injector.pid);
    agent.destroy();
    latencies.sort((a, b) => a - b);
    const quantile = (q: number): number => latencies[Math.floor(q * (latencies.length - 1))] as number;
    return {
      mode,
      perSecond: count / took,
      cpuMicroseconds: (cpu / count) * 1e6,
      p50Ms: quantile(0.5),
      p99Ms: quantile(0.99),
      maxMs: quantile(1),
      waitedFraction,
      idleMb,
      atRateMb,
      atMostMb,
    };
  } finally {
    await injector.stop();
  }
}

async function listeningPort(stdout: NodeJS.ReadableStream): Promise<number> {
  const lines = createInterface(stdout);
  const found = await new Promise<number>((resolve, reject) => {
    lines.on('line', (line) => {
      const { msg, listen } = JSON.parse(line) as { msg: string; listen?: string };
      if (msg === 'listening') resolve(Number(listen?.split(':')[1]));
    });
    lines.on('close', () => reject(new Error('the injector ended')));
  });
  return found;
}

/** As fast as the connections allow. */
async function inTurns(review: () => Promise<void>, count: number): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await review();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
}

/** Latency in ms of each review, from the moment at which it was due: one that waits for another counts its wait. */
async function atRate(review: () => Promise<void>, seconds: number): Promise<number[]> {
  const latencies: number[] = [];
  const pending: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let index = 0; index < RATE_PER_SECOND * seconds; index++) {
    const dueAt = startedAt + (index * 1000) / RATE_PER_SECOND;
    while (performance.now() < dueAt) await new Promise((resolve) => setImmediate(resolve));
    pending.push(review().then(() => void latencies.push(performance.now() - dueAt)));
  }
  await Promise.all(pending);
  return latencies;
}

/** Run delay of the main thread: the second field of /proc/PID/schedstat, in ns (proc(5)). */
function waitedSeconds(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e9;
}

function megabytes(pid: number): number {
  return memoryOf(pid).residentBytes / 2 ** 20;
}

function table(figures: readonly Figures[], seconds: number): string {
  const rows = figures.map((each) =>
    [
      each.mode,
      each.perSecond.toFixed(0),
      each.cpuMicroseconds.toFixed(0),
      each.p50Ms.toFixed(2),
      each.p99Ms.toFixed(2),
      each.maxMs.toFixed(1),
      `${(each.waitedFraction * 100).toFixed(0)} %`,
      each.idleMb.toFixed(0),
      each.atRateMb.toFixed(0),
      each.atMostMb.toFixed(0),
    ].join(' | '),
  );
  return [
    '# Results',
    '',
    `Written by \`node bench/injector/bench.ts ${seconds}\` (Node ${process.version}, ${process.arch}). One core for the`,
    `injector, ${CONNECTIONS} connections, TLS 1.3, a review of ${reviewBody().length} bytes.`,
    '',
    `| | reviews/s at most | CPU µs/review | p50 ms at ${RATE_PER_SECOND}/s | p99 ms | max ms | waited for its core | MB idle | MB at ${RATE_PER_SECOND}/s | MB at most |`,
    '|---|---|---|---|---|---|---|---|---|---|',
    ...rows.map((row) => `| ${row} |`),
    '',
  ].join('\n');
}

const cores = shareOutCores();
const seconds = Number(process.argv[2] ?? 10);
const directory = await mkdtemp(join(tmpdir(), 'bench-injector-'));
const api = await startApiServer();
try {
  execFileSync('taskset', ['-cp', cores.load, String(process.pid)], { stdio: 'ignore' });
  const issued = await issueCertificate({ hosts: [HOST], nowMs: Date.now(), lifetimeMs: 3_600_000 });
  await writeFile(join(directory, 'tls.crt'), issued.cert);
  await writeFile(join(directory, 'tls.key'), issued.key, { mode: 0o600 });
  const kubeconfig = join(directory, 'kubeconfig');
  const cluster = { server: `http://127.0.0.1:${api.port}`, 'insecure-skip-tls-verify': true };
  await writeFile(
    kubeconfig,
    JSON.stringify({
      clusters: [{ name: 'bench', cluster }],
      users: [{ name: 'bench', user: {} }],
      contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench', namespace: 'system' } }],
      'current-context': 'bench',
    }),
  );
  const byApi = ['--kubernetes-api', 'true', '--kubeconfig', kubeconfig, '--check-secrets', 'true'];
  const figures = [
    await measure('files', [], directory, issued.ca, seconds),
    await measure('Kubernetes API', byApi, directory, issued.ca, seconds),
  ];
  const text = table(figures, seconds);
  await writeFile(join(import.meta.dirname, 'results.md'), text);
  process.stdout.write(text);
} finally {
  api.close();
  await rm(directory, { recursive: true });
}
