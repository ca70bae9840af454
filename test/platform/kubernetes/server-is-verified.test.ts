/** No token goes to a server that the cluster's CA does not vouch for, whatever the environment says. */

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { SURROUNDINGS } from '../../support/run-command.ts';

const SOURCES = join(import.meta.dirname, '../../../src');

/** Asks the server of a kubeconfig, in a process of its own: Node reads the variable as it starts. */
const ASK = `
const { connectKubernetes } = await import(${JSON.stringify(join(SOURCES, 'platform/kubernetes/client.ts'))});
const { systemClock } = await import(${JSON.stringify(join(SOURCES, 'platform/time/clock.ts'))});
const told = await connectKubernetes(process.argv[1], systemClock).request('GET', '/version').then(() => 'answered', (error) => error.message);
process.stdout.write(told, () => process.exit());
`;

async function askedBy(ca: string | undefined, skip: boolean) {
  const seen: (string | undefined)[] = [];
  const identity = createCertificateAuthority('cluster').issue('API server', '127.0.0.1');
  const server = createServer(identity, (request, response) => {
    seen.push(request.headers.authorization);
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-kubeconfig-'));
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    await rm(directory, { recursive: true, force: true });
  });
  const file = join(directory, 'config');
  const cluster = {
    server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...(ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    ...(skip ? { 'insecure-skip-tls-verify': true } : {}),
  };
  const config = {
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: 'service-account-token' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  await writeFile(file, JSON.stringify(config));
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', ASK, file], {
    env: { ...SURROUNDINGS, NODE_TLS_REJECT_UNAUTHORIZED: '0' },
  });
  return { told: stdout, seen };
}

it.each([
  ['of another CA', createCertificateAuthority('another').cert],
  ['that no CA is given for', undefined],
])('a server %s gets none, though NODE_TLS_REJECT_UNAUTHORIZED is 0', async (_, ca) => {
  const { told, seen } = await askedBy(ca, false);
  expect(told).toMatch(/^GET \/version: (UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO)/);
  expect(seen).toEqual([]);
});

it('a kubeconfig that says insecure-skip-tls-verify is heeded', async () => {
  expect(await askedBy(undefined, true)).toEqual({
    told: 'answered',
    seen: ['Bearer service-account-token'],
  });
});
