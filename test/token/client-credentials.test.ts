import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { CredentialConfig } from '../../src/config/config.ts';
import { readCredentials } from '../../src/token/credentials.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { mountSecret } from '../support/kubelet-secret.ts';

type Settings = Pick<CredentialConfig, 'clientAuth' | 'clientId'>;

const POST: Settings = { clientAuth: { method: 'client_secret_post' } };
const KEY: Settings = {
  clientAuth: { method: 'private_key_jwt', keyFile: 'private_key' },
};
const TLS: Settings = { clientAuth: { method: 'tls_client_auth' } };
const KUBERNETES: Settings = { clientAuth: { method: 'kubernetes_jwt', tokenFile: 'token' } };

const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const authority = createCertificateAuthority('Test CA');
const shop = authority.issue('shop');
const other = authority.issue('other');

async function read(settings: Settings, files: Record<string, string>) {
  const { directory } = await mountSecret(files);
  return { directory, reading: await readCredentials({ directory, ...settings }) };
}

describe('each client authentication method reads its own files', () => {
  it.each<[string, Settings, Record<string, string>, object]>([
    ['client_secret_post', POST, { client_id: 'shop', client_secret: 'x' }, { clientSecret: 'x' }],
    ['private_key_jwt', KEY, { client_id: 'shop', private_key: pem }, { key: { algorithm: 'EdDSA' } }],
    ['tls_client_auth', TLS, { client_id: 'shop', 'tls.crt': shop.cert, 'tls.key': shop.key }, {}],
  ])('%s', async (method, settings, files, expected) => {
    const credentials = { method, clientId: 'shop', ...expected };
    expect((await read(settings, files)).reading).toMatchObject({ state: 'loaded', credentials });
    const { client_id: _, ...others } = files;
    const configured = await read({ ...settings, clientId: 'shop' }, others);
    expect(configured.reading).toMatchObject({ state: 'loaded', credentials });
    const missing = await read(settings, others);
    expect(missing.reading).toEqual({
      state: 'missing',
      detail: `${missing.directory}/client_id does not exist`,
    });
  });

  it('kubernetes_jwt needs no client id and does not keep the token', async () => {
    const { directory, reading } = await read(KUBERNETES, { token: 'a.b.c' });
    const credentials = { method: 'kubernetes_jwt', tokenFile: 'token', directory, clientId: undefined };
    expect(reading).toEqual({ state: 'loaded', credentials });
  });
});

it.each([
  ['a.b.c', true],
  ['eyJ.e30.c-2_n', true],
  ['a.b', false],
  ['a.b.', false],
  ['.b.c', false],
  ['a..c', false],
  ['a.b.c.d', false],
  [' a.b.c', false],
  ['a.b.c\n\n', false],
])('%j has the form of a JWT: %s', async (token, expected) => {
  const { reading } = await read(KUBERNETES, { token });
  expect(reading.state).toBe(expected ? 'loaded' : 'malformed');
});

describe('unusable credential files are reported as malformed and not quoted', () => {
  it.each<[Settings, Record<string, string>, string]>([
    [
      KEY,
      { private_key: 'S3CRET' },
      'private_key is not an unencrypted private key in PEM or as a single JWK',
    ],
    [TLS, { 'tls.crt': 'S3CRET', 'tls.key': shop.key }, 'tls.crt is not a PEM certificate'],
    [TLS, { 'tls.crt': shop.cert, 'tls.key': 'S3CRET' }, 'tls.key is not an unencrypted private key in PEM'],
    [
      TLS,
      { 'tls.crt': shop.cert, 'tls.key': other.key },
      'tls.key is not the key of the certificate in tls.crt',
    ],
    [KUBERNETES, { token: 'S3CRET' }, 'token is not a signed JWT'],
  ])('%o', async (settings, files, detail) => {
    const { directory, reading } = await read({ clientId: 'shop', ...settings }, files);
    expect(reading).toEqual({ state: 'malformed', detail: `${directory}/${detail}` });
  });
});
