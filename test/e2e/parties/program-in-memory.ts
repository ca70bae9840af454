/** The injector, the broker and the issuer as processes of their own, run as the image runs them, each in the memory that the chart gives it. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { hashSecret } from '../../../src/issuer/secret-hashing.ts';
import { HOST as BROKER_HOST, formOf, startWorld } from '../../broker/running-broker.ts';
import { ASKING } from '../../injector/defaults.ts';
import { reviewOf } from '../../injector/review.ts';
import { FakeKubernetes } from '../../integration/injector/fake-kubernetes.ts';
import { HOST as INJECTOR_HOST, mountCertificate } from '../../integration/injector/running-injector.ts';
import { basic, FORM } from '../../integration/issuer/running-issuer.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { RunningCommand } from '../../support/run-command.ts';
import { readShippedNode } from '../../support/shipped-node.ts';
import { until } from '../../support/until.ts';
import type { Target } from './caller-attack.ts';
import { withinMemory } from './in-memory.ts';
import { placeOf } from './placed.ts';

export type Program = 'injector' | 'broker' | 'issuer';

/** It may be reached, by one that attacks, and by one that must not notice. */
export interface InMemory {
  readonly attacker: Target;
  readonly other: Target;
  readonly running: RunningCommand;
}

const CHART = join(import.meta.dirname, '../../../charts/token-sidecar/values.yaml');
const MIB = 2 ** 20;

const STARTS: Readonly<Record<Program, () => Promise<Started>>> = {
  injector: startInjector,
  broker: startBroker,
  issuer: startIssuer,
};

interface Started extends Pick<Target, 'tls' | 'request' | 'bodyBytes' | 'connections' | 'costly'> {
  readonly args: readonly string[];
  /** Of the other caller. */
  readonly own?: readonly string[];
}

/** @param main the built program. */
export async function startInMemory(program: Program, main: string): Promise<InMemory> {
  const { args, own, ...rest } = await STARTS[program]();
  const { flags, env } = await readShippedNode();
  const listen = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
  const through = [...placeOf('program'), ...withinMemory(await memoryOf(program), flags)];
  const running = new RunningCommand([program, ...listen, ...args], env, through, main);
  const [, port, admin] = await running.output(/"listen":"127\.0\.0\.1:(\d+)".*"admin":"(127\.0\.0\.1:\d+)"/);
  await until(async () => (await fetch(`http://${admin}/readyz`)).status === 200);
  const attacker: Target = { ...rest, port: Number(port) };
  return {
    attacker,
    other: own === undefined ? attacker : { ...attacker, own },
    running,
  };
}

async function memoryOf(program: Program): Promise<number> {
  const values = parse(await readFile(CHART, 'utf8'));
  return Number(/^(\d+)Mi$/.exec(values[program].resources.limits.memory)?.[1]) * MIB;
}

async function startInjector(): Promise<Started> {
  const mounted = await mountCertificate();
  const ca = await mounted.issue();
  const api = await FakeKubernetes.start('https');
  const pod = { metadata: { annotations: ASKING }, spec: { containers: [{ name: 'app' }] } };
  const large = {
    metadata: { annotations: { ...ASKING, note: 'x'.repeat(3.5 * MIB) } },
    spec: { ...pod.spec, values: Array.from({ length: 60_000 }, () => ({})) },
  };
  const post = (body: string): string => posted('/mutate', INJECTOR_HOST, 'application/json', body);
  return {
    args: [...mounted.settings, '--kubernetes-api', 'true', '--kubeconfig', await api.kubeconfig()],
    tls: { ca, servername: INJECTOR_HOST },
    request: post(reviewOf(pod)),
    bodyBytes: 4 * MIB,
    connections: 300,
    costly: [post(reviewOf(large))],
  };
}

async function startBroker(): Promise<Started> {
  const world = await startWorld();
  const { cluster } = world;
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-parties-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const authority = createCertificateAuthority('brokers');
  const { cert, key } = authority.issue('broker', BROKER_HOST, '127.0.0.1');
  const files = { cert: join(directory, 'tls.crt'), key: join(directory, 'tls.key') };
  await writeFile(files.cert, cert);
  await writeFile(files.key, key);
  const post = (token: string): string =>
    posted('/token/payments/payments', BROKER_HOST, FORM, formOf(token));
  /** A signature that is none, of a key that there is. */
  const forged = (n: number): string =>
    `${cluster.token(cluster.pod('shop', `forged-${n}`)).replace(/[^.]*$/, '')}${'A'.repeat(86)}`;
  return {
    args: [
      ...['--tls-cert-file', files.cert, '--tls-key-file', files.key],
      ...['--secrets-dir', join(directory, 'secrets'), '--kubeconfig', await cluster.api.kubeconfig()],
    ],
    tls: { ca: authority.cert, servername: BROKER_HOST },
    request: post(cluster.token(cluster.pod('shop', 'web'))),
    own: Array.from({ length: 100 }, (_, n) =>
      post(cluster.token(cluster.pod('shop', 'other', `other-${n}`))),
    ),
    bodyBytes: 16 * 1024,
    connections: 1100,
    costly: Array.from({ length: 1000 }, (_, n) => post(forged(n))),
  };
}

async function startIssuer(): Promise<Started> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-parties-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const clients = join(directory, 'clients.yaml');
  const secretHash = await hashSecret('right');
  const definitions = ['web', 'other'].map((clientId) => ({ clientId, secretHash }));
  await writeFile(clients, JSON.stringify({ clients: definitions }), { mode: 0o600 });
  const post = (clientId: string, secret: string): string =>
    posted(
      '/realms/dx/protocol/openid-connect/token',
      'issuer',
      `${FORM}\r\nauthorization: ${basic(clientId, secret)}`,
      'grant_type=client_credentials',
    );
  return {
    args: ['--clients-file', clients],
    request: post('web', 'right'),
    own: [post('other', 'right')],
    bodyBytes: 16 * 1024,
    connections: 800,
    costly: Array.from({ length: 1000 }, (_, n) =>
      post(['web', 'other', `nobody${n}`][n % 3] as string, `wrong ${n}`),
    ),
  };
}

function posted(path: string, host: string, contentType: string, body: string): string {
  return [
    `POST ${path} HTTP/1.1`,
    `host: ${host}`,
    `content-type: ${contentType}`,
    `content-length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n');
}
