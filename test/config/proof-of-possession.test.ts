import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';

const CREDENTIAL = { name: 'default', tokenUrl: 'https://sso.test/token', proofOfPossession: 'dpop' };

async function load(
  credential: object,
  route: object = {},
  environment: Readonly<Record<string, string>> = {},
) {
  const file = {
    credentials: [{ ...CREDENTIAL, ...credential }],
    routes: [{ name: 'api', upstream: 'https://api.test', ...route }],
  };
  const given = Object.fromEntries(
    Object.entries(environment).map(([flag, text]) => [flag, { key: flag, text }]),
  );
  const at = { config: { key: '--config', text: '/token-sidecar.json' }, ...given };
  return await loadConfig(at, [], JSON.stringify(file));
}

it.each([
  ['a key of the process', {}, { allowsBearer: false }],
  ['a mounted key', { dpop: { keyFile: 'key' } }, { keyFile: 'key', allowsBearer: false }],
  ['Bearer allowed', { dpop: { allowBearer: true } }, { allowsBearer: true }],
  ['none', { proofOfPossession: 'none' }, undefined],
])('proofOfPossession: %s', async (_, credential, dpop) => {
  expect((await load(credential)).credentials[0]?.dpop).toEqual(dpop);
});

it('the variable overrides the file for the default credential', async () => {
  const { credentials } = await load({}, {}, { 'proof-of-possession': 'none' });
  expect(credentials[0]?.dpop).toBeUndefined();
});

it.each([
  ['static', { grant: 'static' }],
  [
    'github_app',
    { grant: 'jwt_bearer', jwtBearer: { kind: 'github_app' }, tokenUrl: 'https://api.github.test/token' },
  ],
])('the variable beside a credential whose tokens cannot be bound (%s) is refused', async (_, credential) => {
  const file = { proofOfPossession: undefined, tokenUrl: undefined, ...credential };
  await expect(load(file, {}, { 'proof-of-possession': 'dpop' })).rejects.toThrow(
    'proof-of-possession: "dpop": expected none: no token of credential default can be bound to a key',
  );
});

it.each([
  [
    'tokenType: any without allowBearer',
    { tokenType: 'any' },
    {},
    'tokenType: expected nothing with proofOfPossession: dpop',
  ],
  [
    'an unknown kind',
    { proofOfPossession: 'mtls' },
    {},
    'proofOfPossession: "mtls": expected one of none, dpop',
  ],
  [
    'settings without it',
    { proofOfPossession: 'none', dpop: {} },
    {},
    'dpop: expected nothing without proofOfPossession: dpop',
  ],
  ['an output', { output: { endpoint: true } }, {}, 'output: expected nothing with proofOfPossession: dpop'],
  ['a mounted token', { tokenUrl: undefined, grant: 'static' }, {}, 'proofOfPossession: expected nothing'],
  [
    'another place in the request',
    {},
    { inject: { header: 'x-token' } },
    'routes[0].inject: expected nothing: tokens of credential default go into Authorization',
  ],
])('%s is refused with its place', async (_, credential, route, message) => {
  await expect(load(credential, route)).rejects.toThrow(message);
});
