import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { needsRestart } from '../../../src/sidecar/reload/needs-restart.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';

const BASE = {
  listen: '127.0.0.1:15080',
  admin: { listen: '127.0.0.1:15081' },
  credentials: [
    { name: 'default', tokenUrl: 'https://sso.test/token', dir: '/secret' },
    {
      name: 'given',
      tokenUrl: 'https://sso.test/token',
      dir: '/secret',
      output: { file: '/run/given', endpoint: true },
    },
  ],
  routes: [{ name: 'api', upstream: 'https://api.test', credential: 'default' }],
  forwardProxy: {
    connect: 'intercept',
    allow: [
      { host: 'one.test', credential: 'default' },
      { host: '*.many.test', credential: 'given' },
    ],
  },
  capture: { hosts: [{ host: 'api.test', address: '127.0.0.2', credential: 'default' }] },
};

async function configOf(changes: object = {}): Promise<Config> {
  const given = { config: { key: '--config', text: '/token-sidecar.json' } };
  return await loadConfig(given, [], JSON.stringify({ ...BASE, ...changes }));
}

async function reasons(changes: object): Promise<string[]> {
  const start = await configOf();
  return needsRestart(start, start, await configOf(changes));
}

describe('takes effect at once', () => {
  it.each<[string, object]>([
    ['nothing', {}],
    ['a route', { routes: [{ name: 'other', upstream: 'https://other.test', credential: 'given' }] }],
    ['a credential', { credentials: [{ ...BASE.credentials[0], scope: 'read' }, BASE.credentials[1]] }],
    ['limits and the log level', { limits: { inFlight: 5 }, logLevel: 'debug', accessLog: undefined }],
    ['how long it drains', { shutdown: { drainTimeout: '3s' } }],
    [
      'what goes with a captured host',
      { capture: { hosts: [{ ...BASE.capture.hosts[0], retryOn401: false }] } },
    ],
    ['fewer hosts', { forwardProxy: { ...BASE.forwardProxy, allow: [BASE.forwardProxy.allow[1]] } }],
  ])('%s', async (_, changes) => {
    expect(await reasons(changes)).toEqual([]);
  });
});

describe('takes a restart', () => {
  it.each<[string, object, string]>([
    ['listen', { listen: '127.0.0.1:15090' }, 'listen: from 127.0.0.1:15080 to 127.0.0.1:15090'],
    [
      'the admin listener',
      { admin: { listen: '127.0.0.1:15091' } },
      'admin.listen: from 127.0.0.1:15081 to 127.0.0.1:15091',
    ],
    [
      'names of the admin listener',
      { admin: { ...BASE.admin, hosts: ['status.test'] } },
      'admin.hosts: from none to status.test',
    ],
    [
      'the token endpoint',
      { tokenEndpoint: { listen: '127.0.0.1:15099' } },
      'tokenEndpoint.listen: from 127.0.0.1:15082 to 127.0.0.1:15099',
    ],
    [
      'a file for a token',
      { credentials: [BASE.credentials[0], { ...BASE.credentials[1], output: { endpoint: true } }] },
      'output of credential given: a file or an endpoint for its token',
    ],
    [
      'another captured host',
      {
        capture: {
          hosts: [...BASE.capture.hosts, { host: 'one.test', address: '127.0.0.3', credential: 'default' }],
        },
      },
      'capture.hosts: from api.test=127.0.0.2 (443, 80 in clear) to api.test=127.0.0.2 (443, 80 in clear), one.test=127.0.0.3 (443, 80 in clear)',
    ],
    [
      'the port of redirected connections',
      { redirect: { hosts: [{ host: 'one.test', credential: 'default' }] } },
      'redirect: from none to port 15083',
    ],
    [
      'where certificates are left',
      { interception: { directory: '/run/trust' } },
      'interception.directory: from /var/run/token-sidecar/trust to /run/trust',
    ],
    [
      'another host whose TLS is intercepted',
      {
        forwardProxy: {
          ...BASE.forwardProxy,
          allow: [...BASE.forwardProxy.allow, { host: 'two.test', credential: 'default' }],
        },
      },
      'hosts whose TLS is intercepted: two.test, which apps do not trust the sidecar for yet',
    ],
  ])('%s', async (_, changes, reason) => {
    expect(await reasons(changes)).toEqual([reason]);
  });

  it('and the reasons are all named', async () => {
    expect(await reasons({ listen: '127.0.0.1:1', admin: { listen: '127.0.0.1:2' } })).toHaveLength(2);
  });

  it('the end and the beginning of the token endpoint', async () => {
    const given = await configOf();
    const without = await configOf({
      credentials: [BASE.credentials[0], { ...BASE.credentials[1], output: undefined }],
    });
    expect(needsRestart(given, given, without)).toContain('tokenEndpoint: a listener that is open');
    expect(needsRestart(without, without, given)).toContain('tokenEndpoint: a listener that is not open yet');
  });

  it('a host that was listed at the start comes back without one', async () => {
    const start = await configOf();
    const fewer = await configOf({
      forwardProxy: { ...BASE.forwardProxy, allow: [BASE.forwardProxy.allow[1]] },
    });
    expect(needsRestart(start, fewer, start)).toEqual([]);
  });
});

describe('of a gateway', () => {
  const authority = createCertificateAuthority('servers');
  const served = authority.issue('gateway.test');
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gateway-'));
    await writeFile(join(directory, 'tls.crt'), served.cert);
    await writeFile(join(directory, 'tls.key'), served.key);
    await writeFile(join(directory, 'no CA'), authority.cert);
  });
  afterAll(() => rm(directory, { recursive: true }));

  const gatewayOf = (changes: object) =>
    loadConfig(
      { config: { key: '--config', text: '/token-sidecar.json' } },
      [],
      JSON.stringify({
        credentials: [BASE.credentials[0]],
        routes: BASE.routes,
        gateway: {
          tls: { certFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key') },
          serviceAccountTokens: {},
          callers: [{ name: 'web', match: { serviceAccount: 'shop/web' }, allowedRoutes: ['api'] }],
          ...changes,
        },
      }),
    );

  it('each setting that takes a restart is named by its own key', async () => {
    const start = await gatewayOf({});
    const next = await gatewayOf({
      listen: '127.0.0.1:15444',
      clientCaFile: join(directory, 'no CA'),
      serviceAccountTokens: { audience: 'other' },
    });
    expect(needsRestart(start, start, next)).toEqual([
      'gateway.listen: from [::]:15443 to 127.0.0.1:15444',
      `gateway.clientCaFile: from none to ${directory}/no CA`,
      'gateway.serviceAccountTokens.audience: from token-sidecar-gateway to other',
    ]);
  });

  it('callers and how long it takes leave need none', async () => {
    const start = await gatewayOf({});
    const callers = [{ name: 'all', match: { serviceAccount: 'shop/*' }, allowedRoutes: ['api'] }];
    expect(needsRestart(start, start, await gatewayOf({ callers, drainDelay: '1s' }))).toEqual([]);
  });
});
