import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { ProxyValues } from '../../src/config/proxy-settings.ts';
import { sidecarListenerAt } from '../../src/config/sidecar-listeners.ts';
import { ConfigurationError } from '../../src/platform/problems.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';

const CREDENTIAL = { name: 'default', tokenUrl: 'https://sso.example.com/token', output: { endpoint: true } };

/** Stands for the directory of the file, in its settings. */
const DIRECTORY = '/directory-of-the-file';
const served = createCertificateAuthority('servers').issue('gateway.test');

async function load(settings: object, flags: Readonly<Record<string, string>> = {}): Promise<Config> {
  const directory = await mkdtemp(join(tmpdir(), 'listeners-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'token-sidecar.yaml');
  const routes = [{ name: 'a', upstream: 'https://api.example.com' }];
  const file = JSON.stringify({ credentials: [CREDENTIAL], routes, ...settings });
  await writeFile(path, file.replaceAll(DIRECTORY, directory));
  await writeFile(join(directory, 'tls.crt'), served.cert);
  await writeFile(join(directory, 'tls.key'), served.key);
  const given = Object.entries({ config: path, ...flags }).map(([flag, text]) => [
    flag,
    { key: `--${flag}`, text },
  ]);
  return await loadConfig(Object.fromEntries(given) as ProxyValues);
}

async function problemsOf(...args: Parameters<typeof load>) {
  const error = await load(...args).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error === undefined) return [];
  if (!(error instanceof ConfigurationError)) throw error;
  return error.problems.map(({ key, value, code, expected }) => ({ key, value, code, expected }));
}

const captured = (address: string, ...ports: number[]) => ({
  capture: { hosts: [{ host: 'api.test', address, ports }] },
  interception: { directory: '/tmp' },
});

const gateway = (listen: string, more: object = {}) => ({
  credentials: [{ name: 'default', tokenUrl: 'https://sso.example.com/token' }],
  gateway: {
    listen,
    tls: { certFile: `${DIRECTORY}/tls.crt`, keyFile: `${DIRECTORY}/tls.key` },
    serviceAccountTokens: {},
    callers: [{ name: 'web', match: { serviceAccount: 'shop/web' }, allowedRoutes: ['a'] }],
  },
  ...more,
});

describe('two listeners at one address are refused', () => {
  it.each<[string, object, string, string]>([
    ['the same', { listen: '127.0.0.1:7000', admin: { listen: '127.0.0.1:7000' } }, 'admin.listen', 'listen'],
    ['every address', { admin: { listen: '[::]:15080' } }, 'admin.listen', 'listen'],
    ['every one of IPv4', { listen: '0.0.0.0:15082' }, 'tokenEndpoint.listen', 'listen'],
    ['a name', { admin: { listen: 'localhost:15080' } }, 'admin.listen', 'listen'],
    ['a captured one', captured('127.0.0.2', 15_081), 'capture.hosts[0].address', 'admin.listen'],
    [
      'a redirected one',
      {
        listen: '[::1]:15083',
        redirect: { hosts: [{ host: 'api.test' }] },
        interception: { directory: '/tmp' },
      },
      'redirect.port',
      'listen',
    ],
  ])('%s', async (_, settings, key, other) => {
    expect(await problemsOf(settings)).toEqual([
      {
        key,
        value: expect.stringMatching(/:\d+$/),
        code: 'conflicting_settings',
        expected: expect.stringContaining(`does not have already: ${other} is `),
      },
    ]);
  });

  it('the gateway and what is beside it, which the proxy for an app is not', async () => {
    const at = (listen: string, admin: string) => problemsOf(gateway(listen, { admin: { listen: admin } }));
    expect(await at('0.0.0.0:7000', '127.0.0.1:7000')).toMatchObject([
      {
        key: 'admin.listen',
        expected: expect.stringContaining('have already: gateway.listen is 0.0.0.0:7000'),
      },
    ]);
    expect(await at('0.0.0.0:15443', '127.0.0.1:15080')).toEqual([]);
  });

  it('by the flags that name them', async () => {
    const flags = { listen: '127.0.0.1:7000', 'admin-listen': '0.0.0.0:7000' };
    expect(await problemsOf({}, flags)).toMatchObject([
      { key: '--admin-listen', expected: expect.stringContaining('--listen is 127.0.0.1:7000') },
    ]);
  });

  it('and others are not', async () => {
    for (const settings of [
      { listen: '127.0.0.1:0', admin: { listen: '127.0.0.1:0' } },
      { listen: '127.0.0.1:7000', admin: { listen: '127.0.0.2:7000' } },
      { listen: '0.0.0.0:7000', admin: { listen: '[::1]:7000' } },
      captured('127.0.0.2', 15_080),
    ]) {
      expect(await problemsOf(settings)).toEqual([]);
    }
  });

  it('nor where one was not understood', async () => {
    expect(await problemsOf({ admin: { listen: '127.0.0.1:15080' } }, { listen: 'nonsense' })).toMatchObject([
      { key: '--listen' },
    ]);
  });
});

it('a listener is found by any address that leads to it', async () => {
  const config = await load({ listen: 'localhost:7000', admin: { listen: '0.0.0.0:7001' } });
  const at = (address: string, port: number) => sidecarListenerAt(config, [address], port)?.what;
  expect(['localhost', '127.0.0.1', '::1', '127.0.0.2'].map((address) => at(address, 7000))).toEqual([
    'proxy',
    'proxy',
    'proxy',
    undefined,
  ]);
  expect(['localhost', '127.0.0.9', '::1', '192.0.2.1'].map((address) => at(address, 7001))).toEqual([
    'admin',
    'admin',
    undefined,
    undefined,
  ]);
});

it('a gateway listens for its callers, and for no app', async () => {
  const config = await load(gateway('127.0.0.1:15443'));
  const at = (port: number) => sidecarListenerAt(config, ['127.0.0.1'], port)?.what;
  expect([15_443, 15_081, 15_080].map(at)).toEqual(['gateway', 'admin', undefined]);
});
