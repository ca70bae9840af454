import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { type Sidecar, startSidecar } from '../../src/sidecar/sidecar.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { answer, answerToken, ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { temporaryFile } from '../wire/temporary-file.ts';

const REFUSAL = JSON.stringify({ error: 'invalid_client' });

async function startUpstream(): Promise<string> {
  const server = createServer((request, response) => response.end(request.headers.authorization));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Two credentials: a good one, and one whose secret is wrong. */
async function startBoth(required: boolean): Promise<Sidecar> {
  const good = await ScriptedTokenEndpoint.start(answerToken({ access_token: 'good' }));
  const bad = await ScriptedTokenEndpoint.start(answer(401, REFUSAL));
  const { directory: dir } = await mountSecret({ client_id: 'shop', client_secret: 'one' });
  const upstream = await startUpstream();
  const config = {
    listen: '127.0.0.1:0',
    admin: { listen: '127.0.0.1:0' },
    credentials: [
      { name: 'good', tokenUrl: good.url, dir },
      { name: 'bad', tokenUrl: bad.url, dir, required },
    ],
    routes: [
      { name: 'good', match: { pathPrefix: '/good' }, upstream, credential: 'good' },
      { name: 'bad', match: { pathPrefix: '/bad' }, upstream, credential: 'bad' },
    ],
  };
  const path = await temporaryFile('token-sidecar.json', JSON.stringify(config));
  const sidecar = await startSidecar({
    config: await loadConfig({ config: { key: '--config', text: path } }),
    log: captureLog().log,
    quit: () => {},
  });
  onTestFinished(() => sidecar.stop());
  await sidecar.tokens[0]?.firstToken;
  await expect.poll(() => sidecar.tokens[1]?.snapshot().lastFailure?.result).toBe('rejected');
  return sidecar;
}

const proxied = (sidecar: Sidecar, path: string) =>
  fetch(`http://${formatAddress(sidecar.proxyAddress)}${path}`, { headers: { connection: 'close' } });
const admin = (sidecar: Sidecar, path: string) =>
  fetch(`http://${formatAddress(sidecar.adminAddress)}${path}`);

it('fails the routes that use it alone, and at once', async () => {
  const sidecar = await startBoth(false);
  expect(await (await proxied(sidecar, '/good')).text()).toBe('Bearer good');
  const beganAtMs = performance.now();
  const refused = await proxied(sidecar, '/bad');
  expect(performance.now() - beganAtMs).toBeLessThan(2000);
  expect(refused.status).toBe(503);
  // The next grant is half a minute off, give or take.
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(10);
  expect(await refused.json()).toMatchObject({
    code: 'token_unavailable',
    detail: expect.stringContaining('invalid_client'),
  });
  expect((await admin(sidecar, '/readyz')).status).toBe(200);
  expect((await admin(sidecar, '/startupz')).status).toBe(200);
});

it('keeps a pod that requires it from starting, and both probes say which it is', async () => {
  const sidecar = await startBoth(true);
  expect((await proxied(sidecar, '/good')).status).toBe(200);
  for (const probe of ['/readyz', '/startupz']) {
    const answered = await admin(sidecar, probe);
    expect(answered.status).toBe(503);
    const { missing } = (await answered.json()) as { missing: unknown };
    expect(missing).toEqual([
      { part: 'credential', name: 'bad', detail: expect.stringContaining('rejected the client') },
    ]);
  }
});
