import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import schema from '../../schema/token-sidecar.schema.json' with { type: 'json' };
import { type Schema, settingsOf } from '../../scripts/configuration/describe-schema.ts';
import { SETTINGS } from '../../scripts/configuration/settings.ts';
import { loadConfig } from '../../src/config/load.ts';
import { selfSigned } from '../wire/certificate.ts';

type Settings = Record<string, unknown>;

/** Of the gateway: files have to be there. */
const directory = mkdtempSync(join(tmpdir(), 'setting-defaults-'));
afterAll(() => rmSync(directory, { recursive: true }));
for (const [name, text] of Object.entries(selfSigned('gateway.test')))
  writeFileSync(join(directory, name), text);
const certFile = join(directory, 'cert');
const files = { clientCaFile: certFile, tls: { certFile, keyFile: join(directory, 'key') } };

/** A gateway serves routes alone. */
function gatewayBase(path: string): Settings {
  const allowed = path.endsWith('Routes') ? { allowedCredentials: ['default'] } : { allowedRoutes: ['api'] };
  const callers = [{ name: 'web', match: { certificate: 'web.test' }, ...allowed }];
  return {
    credentials: [{ name: 'default', tokenUrl: 'https://sso.test/token' }],
    routes: [{ name: 'api', upstream: 'https://api.test' }],
    gateway: { ...files, serviceAccountTokens: {}, ...(path.includes('[]') ? { callers } : {}) },
  };
}

/** A file with an entry in each list, in which all else is left out. */
function base(path: string): Settings {
  if (path.startsWith('gateway.')) return gatewayBase(path);
  return {
    credentials: [{ name: 'default', tokenUrl: 'https://sso.test/token', output: { endpoint: true } }],
    routes: [{ name: 'api', upstream: 'https://api.test' }],
    forwardProxy: { allow: [{ host: 'listed.test' }] },
    capture: { hosts: [{ host: 'captured.test', address: '127.0.0.2' }] },
    redirect: { hosts: [{ host: 'redirected.test' }] },
  };
}

/** What has to stand beside a setting for it to be of use. */
const BESIDE: readonly [RegExp, string, unknown][] = [
  [/^credentials\[\]\.realm$/, 'credentials[]', { name: 'default', authUrl: 'https://sso.test' }],
  [/assertion\.tokenFile$/, 'credentials[].clientAuth', 'kubernetes_jwt'],
  [/assertion\.keyFile$/, 'credentials[].clientAuth', 'private_key_jwt'],
  [/jwtBearer\./, 'credentials[].grant', 'jwt_bearer'],
  [/tokenExchange\./, 'credentials[].grant', 'token_exchange'],
  [/static\./, 'credentials[]', { name: 'default', grant: 'static' }],
  [
    /dpop\.allowBearer$/,
    'credentials[]',
    { name: 'default', tokenUrl: 'https://sso.test/token', proofOfPossession: 'dpop' },
  ],
  [/output\.endpoint$/, 'credentials[].output', { file: '/run/token' }],
  [/egressProxy\./, 'SELF.url', 'http://proxy.test:3128'],
  [/inject(\[\])?\.header$/, 'SELF.scheme', 'Bearer'],
];

/** Sets what a path names, in the first entry of each list on the way. */
function set(root: Settings, path: string, value: unknown): void {
  const steps = path.replaceAll('[]', '.0').split('.');
  const last = steps.pop() as string;
  let at: Settings = root;
  steps.forEach((step, index) => {
    const next = steps[index + 1] ?? last;
    at[step] ??= next === '0' ? [] : {};
    at = at[step] as Settings;
  });
  at[last] = value;
}

async function loaded(file: Settings) {
  const given = { config: { key: '--config', text: '/token-sidecar.json' } };
  return await loadConfig(given, [], JSON.stringify(file));
}

/** The file without a setting, and with it as it is said to be by default. */
function bothWays(path: string, value: unknown): [Settings, Settings] {
  const without = base(path);
  const beside = BESIDE.find(([pattern]) => pattern.test(path));
  if (beside !== undefined) {
    const parent = path.slice(0, path.lastIndexOf('.'));
    set(without, beside[1].replace('SELF', parent), beside[2]);
  }
  const given = structuredClone(without);
  set(given, path, value);
  return [without, given];
}

const DEFAULTS = Object.entries(SETTINGS).filter(([, setting]) => setting.default !== undefined);

describe('a setting that is said to be so by default changes nothing when it is written down', () => {
  it.each(DEFAULTS)('%s', async (path, setting) => {
    const [without, given] = bothWays(path, setting.default);
    expect(await loaded(given)).toEqual(await loaded(without));
  });
});

it('every key of the schema has a description, and every default is there', () => {
  const nodes = settingsOf(schema as Schema);
  expect(nodes.length).toBeGreaterThan(150);
  expect(nodes.filter((node) => node.schema.description === undefined)).toEqual([]);
  const missing = nodes.filter((node) => node.schema.default !== SETTINGS[node.path]?.default);
  expect(missing.filter((node) => typeof node.schema.default !== 'object')).toEqual([]);
});
