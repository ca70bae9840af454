/**
 * A name server that stops answering for some names, a provider, an API, an app and the sidecar. Run by the test in namespaces of
 * their own with a directory and what is to hang; prints the outcome as JSON.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { Agent, createServer, get, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { openDnsServer } from '../../support/dns-server.ts';
import type { Hanging, Outcome } from './surroundings.ts';

const MAIN = join(import.meta.dirname, '../../../src/main.ts');
const [directory, what] = process.argv.slice(2) as [string, string];
const hanging = JSON.parse(what) as Hanging;

const QUIET_MS = 3000;
const HANGING_MS = 12_000;
/** Longer than the resolver takes to give a name up, and than it takes to ask once more. */
const OUTAGE_MS = 12_000;
const SWIFT_MS = 100;
/** Twice what the resolver takes to give a name up: what was late waits in line behind what still hangs. */
const MAX_RECOVERY_MS = 20_000;
/** Seconds: some grants while names hang. */
const TOKEN_LIVES = 3;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const HERE = { addresses: ['127.0.0.1'] };
const GOOD = ['good-0.test', 'good-1.test', 'good-2.test', 'good-3.test'];
const OURS = 'idp.test';
const THEIRS = 'their-idp.test';
const COLLECTOR = 'collector.test';
const HUNG = Array.from({ length: hanging.upstreams }, (_, index) => `hung-${index}.test`);
const names = await openDnsServer(
  Object.fromEntries([...GOOD, OURS, THEIRS, COLLECTOR, ...HUNG].map((name) => [name, HERE])),
  { port: 53 },
);

/** Each connection is for one request: the next one looks the name up again. */
async function serve(answer: RequestListener): Promise<number> {
  const server = createServer((request, response) => {
    response.setHeader('connection', 'close');
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const api = await serve((_, response) => void response.end('answer'));
let grants = 0;
const provider = await serve((request, response) => {
  grants += Number(request.headers.host?.startsWith(OURS) === true);
  response.setHeader('content-type', 'application/json');
  response.end(
    JSON.stringify({ access_token: `token-${grants}`, token_type: 'Bearer', expires_in: TOKEN_LIVES }),
  );
});

async function startSidecar() {
  const dir = join(directory, 'credentials');
  await mkdir(dir);
  await writeFile(join(dir, 'client_id'), 'shop');
  await writeFile(join(dir, 'client_secret'), 'secret');
  const credential = (name: string, host: string): object => ({
    name,
    tokenUrl: `http://${host}:${provider}/token`,
    allowInsecureTokenUrl: true,
    dir,
  });
  const listen = '127.0.0.1:0';
  const config = {
    listen,
    admin: { listen },
    credentials: [credential('ours', OURS), { ...credential('theirs', THEIRS), required: false }],
    routes: [...GOOD, ...HUNG].map((host) => {
      const name = host.replace('.test', '');
      return {
        name,
        match: { pathPrefix: `/${name}` },
        upstream: `http://${host}:${api}`,
        credential: 'ours',
      };
    }),
    forwardProxy: { allow: [{ host: 'listed.test', credential: 'ours' }], otherHosts: 'pass' },
  };
  const file = join(directory, 'sidecar.json');
  await writeFile(file, JSON.stringify(config));
  const child = spawn(process.execPath, [MAIN, 'proxy', '--config', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${COLLECTOR}:4318`, OTEL_BSP_SCHEDULE_DELAY: '100' },
  });
  let log = '';
  const ready = Promise.withResolvers<void>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    log += text;
    if (log.includes('"msg":"ready"')) ready.resolve();
  });
  child.once('exit', () => ready.reject(new Error(`ended: ${log}`)));
  await ready.promise;
  const { proxy } = JSON.parse(/^.*"msg":"listening".*$/m.exec(log)?.[0] ?? '{}') as { proxy: string };
  return { child, port: Number(proxy.split(':').at(-1)), log: () => log };
}

const { child, port, log } = await startSidecar();
const agent = new Agent({ keepAlive: true });

/** @param host of a URL in the place of the path. */
async function ask(
  path: string,
  host = `127.0.0.1:${port}`,
): Promise<{ readonly status: string; readonly tookMs: number }> {
  const beganAtMs = performance.now();
  const status = await new Promise<string>((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, agent, headers: { host } }, (response) => {
      response.resume().once('close', () => resolve(String(response.statusCode)));
    });
    request.once('error', (error) => resolve(error.message));
  });
  return { status, tookMs: performance.now() - beganAtMs };
}

/** Requests one after the other to each path until then or until `ended`, with a pause between them. */
async function keepAsking(
  paths: readonly string[],
  untilMs: number,
  pauseMs: number,
  ended: () => boolean = () => false,
) {
  const tookMs: number[] = [];
  const answers: Record<string, number> = {};
  const each = async (path: string): Promise<void> => {
    while (performance.now() < untilMs && !ended()) {
      const answered = await ask(path);
      tookMs.push(answered.tookMs);
      answers[answered.status] = (answers[answered.status] ?? 0) + 1;
      await pause(pauseMs);
    }
  };
  await Promise.all(paths.map(each));
  return { tookMs: tookMs.toSorted((a, b) => a - b), answers };
}

async function flood(ended: () => boolean): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  for (let count = 0; !ended(); count++) {
    const host = `${count}.flood.test`;
    names.records.set(host, { silent: true });
    void ask(`http://${host}:${api}/`, `${host}:${api}`).then(({ status }) => {
      answers[status] = (answers[status] ?? 0) + 1;
    });
    await pause(50);
  }
  return answers;
}

const paths = GOOD.map((name) => `/${name.replace('.test', '')}`);
const quiet = await keepAsking(paths, performance.now() + QUIET_MS, 20);

/** No name is answered, and then those that do not hang are again. Ends when a grant and each path had an answer, all at once. */
async function outage(): Promise<void> {
  for (const name of [...GOOD, OURS]) names.records.set(name, { silent: true });
  await keepAsking(paths, performance.now() + OUTAGE_MS, 20);
  for (const name of [...GOOD, OURS]) names.records.set(name, HERE);
  const grantsBefore = grants;
  const untilMs = performance.now() + MAX_RECOVERY_MS;
  while (performance.now() < untilMs) {
    const round = await Promise.all(paths.map((path) => ask(path)));
    const well = round.every(({ status, tookMs }) => status === '200' && tookMs < SWIFT_MS);
    // Two grants: the first may have been asked for before.
    if (well && grants >= grantsBefore + 2) return;
    await pause(20);
  }
}

for (const name of [...HUNG, ...(hanging.own ? [THEIRS, COLLECTOR] : [])])
  names.records.set(name, { silent: true });
let over = false;
const ended = (): boolean => over;
const threeOfEach = HUNG.flatMap((name) => new Array(3).fill(`/${name.replace('.test', '')}`) as string[]);
const hangingOnes = Promise.all([
  keepAsking(threeOfEach, Number.POSITIVE_INFINITY, 100, ended),
  hanging.flood ? flood(ended) : undefined,
]);
if (hanging.outage) await outage();
const grantsBefore = grants;
const logBefore = log().length;
const good = await keepAsking(paths, performance.now() + HANGING_MS, 20);
over = true;
const [hung, flooded = {}] = await hangingOnes;

const tasks = readdirSync(`/proc/${child.pid}/task`);
const threads = tasks.map((task) => readFileSync(`/proc/${child.pid}/task/${task}/comm`, 'utf8').trim());
const { 200: _, ...failed } = good.answers;
const outcome: Outcome = {
  quietMs: quiet.tookMs[Math.floor(quiet.tookMs.length * 0.99)] ?? 0,
  slowestMs: good.tookMs.at(-1) ?? 0,
  requests: good.tookMs.length,
  failed,
  hung: hung.answers,
  flooded,
  grants: grants - grantsBefore,
  failedGrants: log()
    .slice(logBefore)
    .split('\n')
    .filter((line) => line.includes('"msg":"no token obtained"') && !line.includes('"theirs"')),
  poolThreads: threads.filter((name) => name === 'libuv-worker').length,
};
child.kill('SIGKILL');
process.stdout.write(JSON.stringify(outcome), () => process.exit());
