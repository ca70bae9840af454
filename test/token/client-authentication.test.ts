import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { calculateJwkThumbprint, createLocalJWKSet, exportJWK, jwtVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { UnusableFile } from '../../src/credentials/unusable-file.ts';
import { parseAssertionKey } from '../../src/token/client/assertion-key.ts';
import type { ClientCredentials, SigningClient } from '../../src/token/client/client-credentials.ts';
import { proveClient } from '../../src/token/client/client-proof.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { ManualClock } from '../support/manual-clock.ts';

const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

const prove = (credentials: ClientCredentials) => proveClient(credentials, new ManualClock());

describe('client_secret_basic', () => {
  it.each([
    ['form', 'a+b:c', 'p%/=& ü', 'a%2Bb%3Ac:p%25%2F%3D%26+%C3%BC'],
    ['raw', 'ab', 'p%+:ü', 'ab:p%+:ü'],
  ] as const)('encodes both halves: %s', async (encoding, clientId, clientSecret, pair) => {
    const proof = await prove({ method: 'client_secret_basic', encoding, clientId, clientSecret });
    const sent = proof.authorization?.replace(/^Basic /, '') ?? '';
    expect(Buffer.from(sent, 'base64').toString('utf8')).toBe(pair);
    expect(proof.parameters).toEqual({});
  });
});

it('client_secret_post puts both into the form', async () => {
  const proof = await prove({ method: 'client_secret_post', clientId: 'shop', clientSecret: 'p%+ ü' });
  expect(proof).toEqual({ parameters: { client_id: 'shop', client_secret: 'p%+ ü' } });
});

it('tls_client_auth sends the id alone', async () => {
  const proof = await prove({
    method: 'tls_client_auth',
    clientId: 'shop',
    certificate: 'C',
    privateKey: 'K',
  });
  expect(proof).toEqual({ parameters: { client_id: 'shop' } });
});

describe('private_key_jwt', () => {
  const keys = {
    ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
    EdDSA: () => generateKeyPairSync('ed25519'),
  };

  function signingClient(privateKey: KeyObject): SigningClient {
    const key = parseAssertionKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    if ('expected' in key) throw new Error(key.expected);
    return { method: 'private_key_jwt', clientId: 'shop', audience: 'https://sso/token', key };
  }

  it.each(Object.entries(keys))(
    '%s: the assertion verifies and says what RFC 7523 §3 asks for',
    async (alg, make) => {
      const { privateKey, publicKey } = make();
      const { parameters } = await prove(signingClient(privateKey));
      expect(parameters).toMatchObject({ client_id: 'shop', client_assertion_type: JWT_BEARER });
      const jwk = await exportJWK(publicKey);
      const kid = await calculateJwkThumbprint(jwk);
      const { payload, protectedHeader } = await jwtVerify(
        parameters['client_assertion'] ?? '',
        createLocalJWKSet({ keys: [{ ...jwk, kid, alg }] }),
        { audience: 'https://sso/token', currentDate: new Date(new ManualClock().now().wallMs) },
      );
      expect(protectedHeader).toEqual({ alg, kid, typ: 'JWT' });
      const { iat = 0 } = payload;
      expect(iat).toBe(new ManualClock().now().wallMs / 1000);
      expect(payload).toEqual({
        iss: 'shop',
        sub: 'shop',
        aud: 'https://sso/token',
        iat,
        exp: iat + 60,
        jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
    },
  );

  it('is never the same twice', async () => {
    const client = signingClient(keys.EdDSA().privateKey);
    const [first, second] = [await prove(client), await prove(client)];
    expect(first.parameters['client_assertion']).not.toBe(second.parameters['client_assertion']);
  });
});

describe('kubernetes_jwt', () => {
  it('reads the token anew for each request', async () => {
    const volume = await mountSecret({ token: 'a.b.c' });
    const client = {
      method: 'kubernetes_jwt',
      directory: volume.directory,
      tokenFile: 'token',
      clientId: undefined,
    } as const;
    expect(await prove(client)).toStrictEqual({
      parameters: { client_assertion_type: JWT_BEARER, client_assertion: 'a.b.c' },
    });
    await volume.update({ token: 'd.e.f' });
    expect((await prove({ ...client, clientId: 'shop' })).parameters).toEqual({
      client_id: 'shop',
      client_assertion_type: JWT_BEARER,
      client_assertion: 'd.e.f',
    });
    await volume.update({ token: 'S3CRET but no JWT' });
    const error = await prove(client).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain(`${volume.directory}/token is not a signed JWT`);
    expect(String(error)).not.toContain('S3CRET');
  });

  it('without its file there is no request, and the message names the file', async () => {
    const { directory } = await mountSecret({ other: 'a.b.c' });
    const client = { method: 'kubernetes_jwt', directory, tokenFile: 'token', clientId: 'shop' } as const;
    await expect(prove(client)).rejects.toThrow(UnusableFile);
    await expect(prove(client)).rejects.toThrow('token');
  });
});
