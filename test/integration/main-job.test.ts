import { request as httpRequest } from 'node:http';
import { createRemoteJWKSet } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startAdminServer } from '../../src/admin/admin-server.ts';
import { loadConfig } from '../../src/config/load.ts';
import { startProtectedApi } from '../../src/demo/parties.ts';
import { issuerAdminEndpoints } from '../../src/issuer/admin.ts';
import { createClientStore, defineClients } from '../../src/issuer/clients.ts';
import { startIssuer } from '../../src/issuer/issuer.ts';
import { createKeyRing, generateSigningKey } from '../../src/issuer/keys.ts';
import { createIssuerMetrics } from '../../src/issuer/metrics.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { type Sidecar, startSidecar } from '../../src/sidecar/sidecar.ts';
import { accessTokenIn } from '../../src/token/bearer-source.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';

const ANY_PORT = { host: '127.0.0.1', port: 0 };

const clientsWith = (clientSecret: string) =>
  defineClients([
    { clientId: 'shop', clientSecret, scopes: ['read'], audience: ['api'], tokenLifetime: '60s' },
  ]);

/** The whole product: issuer, API that verifies tokens, sidecar with a mounted Secret; nothing is faked. */
async function startAll(mountedSecret = 'one') {
  const { log, lines } = captureLog();
  const issuerLog = captureLog().log;
  const clients = createClientStore(clientsWith('one'));
  const issuer = await startIssuer({
    listen: ANY_PORT,
    realm: 'dx',
    clients,
    keys: createKeyRing(await generateSigningKey('ES256'), systemClock),
    tokenLifetimeSeconds: 60,
    metrics: createIssuerMetrics(new Registry()),
    clock: systemClock,
    log: issuerLog,
  });
  onTestFinished(() => issuer.close(0));
  const issuerAdmin = await startAdminServer(
    ANY_PORT,
    issuerAdminEndpoints(issuer, () => false),
    issuerLog,
  );
  onTestFinished(() => issuerAdmin.close());
  const api = await startProtectedApi({
    listen: ANY_PORT,
    keys: createRemoteJWKSet(new URL(`http://${formatAddress(issuerAdmin.address)}/jwks`)),
    issuer: issuer.issuer,
    audience: 'api',
  });
  onTestFinished(() => api.close());
  const secret = await mountSecret({ client_id: 'shop', client_secret: mountedSecret });
  const setting = (text: string) => ({ key: 'test', text });
  let quits = 0;
  const sidecar = await startSidecar({
    config: await loadConfig({
      'token-url': setting(issuer.tokenUrl),
      upstream: setting(`http://${formatAddress(api.address)}`),
      'credentials-dir': setting(secret.directory),
      listen: setting('127.0.0.1:0'),
      'admin-listen': setting('127.0.0.1:0'),
    }),
    log,
    quit: () => {
      quits += 1;
    },
  });
  onTestFinished(() => sidecar.stop());
  return { sidecar, secret, clients, issuer, lines, quits: () => quits };
}

/** Closes its connection: a sidecar that stops waits for apps to hang up. */
const proxied = (sidecar: Sidecar, path: string) =>
  fetch(`http://${formatAddress(sidecar.proxyAddress)}${path}`, { headers: { connection: 'close' } });
const admin = (sidecar: Sidecar, path: string, init?: RequestInit) =>
  fetch(`http://${formatAddress(sidecar.adminAddress)}${path}`, init);

it('a request leaves the app without a token and reaches the API with one', async () => {
  const { sidecar } = await startAll();
  const response = await proxied(sidecar, '/whoami?a=b');
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({
    path: '/whoami?a=b',
    caller: { client: 'shop', scope: 'read', audience: 'api' },
  });
});

it('a rotated secret is used at once, and no request notices', async () => {
  const { sidecar, secret, clients } = await startAll();
  await sidecar.ready;
  const before = ((await (await proxied(sidecar, '/')).json()) as { caller: { tokenId: string } }).caller
    .tokenId;
  clients.replace(clientsWith('two'));
  await secret.update({ client_id: 'shop', client_secret: 'two' });
  let after = before;
  while (after === before) {
    const response = await proxied(sidecar, '/');
    expect(response.status).toBe(200);
    after = ((await response.json()) as { caller: { tokenId: string } }).caller.tokenId;
  }
  expect(sidecar.tokens[0]?.grants().latest.map(({ reason, result }) => `${reason} ${result}`)).toEqual([
    'startup success',
    'rotation success',
  ]);
});

it('wrong credentials fail closed, say why, and heal when the Secret is mended', async () => {
  const { sidecar, secret } = await startAll('wrong');
  const refused = await proxied(sidecar, '/');
  expect(refused.status).toBe(503);
  expect(refused.headers.get('token-sidecar-error')).toBe('token_unavailable');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1);
  expect(await refused.json()).toMatchObject({
    detail: expect.stringContaining('status 401 invalid_client'),
  });
  const readyz = await admin(sidecar, '/readyz');
  expect([readyz.status, await readyz.json()]).toEqual([
    503,
    {
      status: 'not ready',
      missing: [
        {
          part: 'credential',
          name: 'default',
          detail: expect.stringMatching(
            /^credential default has had no token since .* http:.* rejected the client \(status 401 invalid_client/,
          ),
        },
      ],
    },
  ]);
  await secret.update({ client_id: 'shop', client_secret: 'one' });
  await sidecar.ready;
  expect((await proxied(sidecar, '/')).status).toBe(200);
});

describe('admin', () => {
  it('the probes and what they mean', async () => {
    const { sidecar } = await startAll();
    await sidecar.ready;
    for (const path of ['/livez', '/readyz', '/startupz'])
      expect((await admin(sidecar, path)).status).toBe(200);
    const head = await admin(sidecar, '/livez', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  it('startup fails until the first token, while liveness does not care', async () => {
    const { sidecar } = await startAll('wrong');
    expect((await admin(sidecar, '/startupz')).status).toBe(503);
    expect((await admin(sidecar, '/livez')).status).toBe(200);
  });

  it('another path is 404, another method 405 with Allow', async () => {
    const { sidecar } = await startAll();
    expect((await admin(sidecar, '/nothing')).status).toBe(404);
    const wrong = await admin(sidecar, '/quitquitquit');
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
    expect((await admin(sidecar, '/livez', { method: 'POST' })).headers.get('allow')).toBe('GET, HEAD');
  });

  it('quitquitquit asks the program to end', async () => {
    const { sidecar, quits } = await startAll();
    expect((await admin(sidecar, '/quitquitquit', { method: 'POST' })).status).toBe(200);
    expect(quits()).toBe(1);
  });

  it('the status tells memory, token, history and traffic, and no token, secret or client id', async () => {
    const { sidecar, lines } = await startAll();
    await sidecar.ready;
    const authorization = sidecar.tokens[0]?.current() ?? '';
    await proxied(sidecar, '/');
    const text = await (await admin(sidecar, '/api/status')).text();
    expect(JSON.parse(text)).toMatchObject({
      memory: { anonymousBytes: expect.any(Number), residentBytes: expect.any(Number) },
      credentials: [
        {
          name: 'default',
          tokenUrl: expect.stringMatching(/^http:.*127.0.0.1:/),
          required: true,
          ready: true,
          history: [{ reason: 'startup', result: 'success' }],
        },
      ],
      routes: [
        {
          name: 'default',
          credential: 'default',
          protocol: 'auto',
          upstreamSpeaks: 'http1',
          requests: { total: 1, inFlight: 0, errors: 0, grpc: { calls: 0, failures: 0 } },
        },
      ],
    });
    const page = await (await admin(sidecar, '/')).text();
    const metrics = await (await admin(sidecar, '/metrics')).text();
    expect(page).toMatch(/<title>✔ .* – token-sidecar<.title>/);
    for (const told of [text, page, metrics, ...lines]) {
      expect(told).not.toContain(accessTokenIn(authorization));
      expect(told).not.toMatch(/\bshop\b/);
    }
  });

  it('every metric of the token, credentials, proxy and build rows is there after one request', async () => {
    const { sidecar, secret } = await startAll();
    await sidecar.ready;
    await proxied(sidecar, '/');
    await secret.update({ client_id: 'shop', client_secret: 'two' });
    const names = [
      'build_info',
      'token_expiry_timestamp_seconds',
      'token_renewal_timestamp_seconds',
      'token_ready',
      'credential_required',
      'token_refresh_total',
      'token_refresh_duration_seconds_bucket',
      'token_refresh_consecutive_failures',
      'credentials_reload_total',
      'credentials_loaded_timestamp_seconds',
      'proxy_requests_total',
      'proxy_request_duration_seconds_bucket',
      'proxy_requests_in_flight',
      'credentials_usable',
      'proxy_upstream_duration_seconds_bucket',
      'proxy_upstream_connections_total',
      'proxy_upstream_unauthorized_total',
      'proxy_replays_total',
    ];
    await expect
      .poll(async () => {
        const text = await (await admin(sidecar, '/metrics')).text();
        return names.filter((name) => !new RegExp(`^token_sidecar_${name}\\{`, 'm').test(text));
      })
      .toEqual([]);
  });

  it('metrics come as OpenMetrics to who asks for it', async () => {
    const { sidecar } = await startAll();
    const open = await admin(sidecar, '/metrics', {
      headers: { accept: 'application/openmetrics-text; version=1.0.0' },
    });
    expect(open.headers.get('content-type')).toMatch(/^application\/openmetrics-text/);
    expect(await open.text()).toMatch(/# EOF\n$/);
  });
});

it('stopping turns readiness off, serves what the app still asks on open connections, and then ends', async () => {
  const { sidecar } = await startAll();
  await sidecar.ready;
  const { Agent } = await import('node:http');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const call = () =>
    new Promise<number>((resolve, reject) => {
      const request = httpRequest({ ...sidecar.proxyAddress, agent, path: '/' }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0));
      });
      request.once('error', reject);
      request.end();
    });
  expect(await call()).toBe(200);
  const stopped = sidecar.stop();
  expect((await admin(sidecar, '/readyz')).status).toBe(503);
  expect(await call()).toBe(200);
  agent.destroy();
  await stopped;
  await expect(proxied(sidecar, '/')).rejects.toThrow();
});
