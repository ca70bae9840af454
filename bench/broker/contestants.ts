/** Token endpoints side by side, each on the core of what is measured. */

import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { KEYCLOAK } from '../../test/e2e/providers.ts';
import {
  type CertificateAuthority,
  createCertificateAuthority,
} from '../../test/support/certificate-authority.ts';
import { readShippedNode } from '../../test/support/shipped-node.ts';
import type { Cores } from '../cores.ts';
import { freePort } from '../free-port.ts';
import { type PinnedProcess, startPinned } from '../pinned-process.ts';
import type { TokenEndpoint } from '../token-endpoint.ts';
import type { Form } from './askers.ts';
import { startCluster } from './cluster.ts';

const ROOT = join(import.meta.dirname, '../..');
const HOST = 'broker.token-sidecar.svc';

const READY_BOUND_MS = 60_000;

/** Of a JWT of a provider. */
const TOKEN_BYTES = 900;

export interface Contestant {
  readonly pid: number;
  readonly port: number;
  readonly tls?: { readonly ca: string; readonly name: string };
  readonly path: string;
  /** One for each caller. */
  readonly forms: readonly Form[];
  close(): Promise<void>;
}

export interface Dependencies {
  /** Of this contestant alone. */
  readonly directory: string;
  readonly cores: Cores;
  readonly provider: TokenEndpoint;
  readonly callers: number;
}

export interface ContestantKind {
  readonly name: string;
  /** What it does for an answer, in a few words. */
  readonly work: string;
  start(surroundings: Dependencies): Promise<Contestant>;
}

export const broker: ContestantKind = {
  name: 'broker',
  work: 'TLS; a service account token known by its review; a line of the log',
  async start({ directory, cores, provider, callers }) {
    const authority = createCertificateAuthority('bench');
    await certify(authority, directory);
    const cluster = await startCluster(`http://127.0.0.1:${provider.port}${provider.path(TOKEN_BYTES)}`);
    const kubeconfig = join(directory, 'kubeconfig');
    await cluster.writeKubeconfig(kubeconfig);
    const running = await startProgram(cores, [
      'broker',
      ...['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0', '--drain-delay', '0s'],
      ...['--tls-cert-file', join(directory, 'tls.crt'), '--tls-key-file', join(directory, 'tls.key')],
      ...['--secrets-dir', join(directory, 'secrets'), '--kubeconfig', kubeconfig],
    ]);
    await untilReady(running.admin);
    const forms = cluster.tokens(callers).map((token) => ({
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: token,
      }).toString(),
    }));
    return {
      pid: running.process.pid,
      port: running.port,
      tls: { ca: authority.cert, name: HOST },
      path: '/token/payments/payments',
      forms,
      async close() {
        await running.process.stop();
        await cluster.close();
      },
    };
  },
};

export const issuer: ContestantKind = {
  name: 'issuer',
  work: 'no TLS; a client secret; a token signed by ES256',
  async start({ directory, cores, callers }) {
    const clients = Array.from({ length: callers }, (_, index) => ({
      clientId: `client-${index}`,
      clientSecret: `secret-${index}`,
    }));
    const file = join(directory, 'clients.json');
    await writeFile(file, JSON.stringify({ clients }), { mode: 0o600 });
    const running = await startProgram(cores, [
      'issuer',
      ...['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0', '--clients-file', file],
    ]);
    await untilReady(running.admin);
    return {
      pid: running.process.pid,
      port: running.port,
      path: '/realms/dx/protocol/openid-connect/token',
      forms: clients.map(({ clientId, clientSecret }) => formOfClient(clientId, clientSecret)),
      close: () => running.process.stop(),
    };
  },
};

export const keycloak: ContestantKind = {
  name: 'keycloak',
  work: `TLS; one client with its secret; a token signed by RS256; Keycloak ${KEYCLOAK.version}`,
  async start({ directory, cores }) {
    const authority = createCertificateAuthority('bench');
    await certify(authority, directory);
    const data = join(KEYCLOAK.directory, 'data');
    await rm(data, { recursive: true, force: true });
    await mkdir(join(data, 'import'), { recursive: true });
    await cp(join(ROOT, 'deploy/keycloak/dx-realm.json'), join(data, 'import/dx-realm.json'));
    const port = await freePort();
    const running = startPinned({
      command: join(KEYCLOAK.directory, 'bin/kc.sh'),
      args: [
        'start-dev',
        '--import-realm',
        '--http-host=127.0.0.1',
        `--http-port=${await freePort()}`,
        `--https-port=${port}`,
        `--https-certificate-file=${join(directory, 'tls.crt')}`,
        `--https-certificate-key-file=${join(directory, 'tls.key')}`,
      ],
      cores: cores.proxy,
      env: { JAVA_OPTS_KC_HEAP: '-Xms64m -Xmx512m' },
    });
    await lineOf(running, (line) => (/Keycloak \S+ on JVM .* started in/.test(line) ? line : undefined));
    return {
      pid: running.pid,
      port,
      tls: { ca: authority.cert, name: HOST },
      path: '/realms/dx/protocol/openid-connect/token',
      forms: [formOfClient('shop', 'shop-secret')],
      close: () => running.stop(),
    };
  },
};

export const ALL_CONTESTANTS: readonly ContestantKind[] = [broker, issuer, keycloak];

function formOfClient(clientId: string, clientSecret: string): Form {
  const pair = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
  return { body: 'grant_type=client_credentials', authorization: `Basic ${pair}` };
}

async function certify(authority: CertificateAuthority, directory: string): Promise<void> {
  const { cert, key } = authority.issue('token endpoint', HOST, '127.0.0.1');
  await writeFile(join(directory, 'tls.crt'), cert);
  await writeFile(join(directory, 'tls.key'), key, { mode: 0o600 });
}

interface RunningProgram {
  readonly process: PinnedProcess;
  readonly port: number;
  /** `host:port` */
  readonly admin: string;
}

/** This project as it is shipped: the bundle, under the image's flags. Its log goes where it would in a pod: down a pipe. */
async function startProgram(cores: Cores, args: readonly string[]): Promise<RunningProgram> {
  const { flags, env } = await readShippedNode();
  const program = startPinned({
    command: process.execPath,
    args: [...flags, ...extraFlags(), join(ROOT, 'dist/token-sidecar.js'), ...args],
    cores: cores.proxy,
    env,
  });
  const { listen, admin } = await lineOf(program, (line) => {
    const { listen: at, admin: adminAt } = JSON.parse(line) as { listen?: string; admin?: string };
    return at === undefined || adminAt === undefined ? undefined : { listen: at, admin: adminAt };
  });
  return { process: program, port: Number(listen.split(':')[1]), admin };
}

/** Such as --cpu-prof, to look at what takes the time. */
function extraFlags(): readonly string[] {
  return (process.env['BENCH_NODE_FLAGS'] ?? '').split(' ').filter((flag) => flag !== '');
}

/** The first line of its output that says something; whatever comes later is read and forgotten. */
function lineOf<T>(
  { stdout, exited, errorOutput }: PinnedProcess,
  find: (line: string) => T | undefined,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const lines = createInterface(stdout);
    lines.on('line', (line) => {
      const found = find(line);
      if (found === undefined) return;
      lines.close();
      stdout.resume();
      resolve(found);
    });
    void exited.then(() => reject(new Error(`the program ended: ${errorOutput()}`)));
  });
}

async function untilReady(admin: string): Promise<void> {
  const endMs = performance.now() + READY_BOUND_MS;
  for (;;) {
    const response = await fetch(`http://${admin}/readyz`);
    const text = await response.text();
    if (response.ok) return;
    if (performance.now() > endMs) throw new Error(`not ready: ${text}`);
    await sleep(20);
  }
}
