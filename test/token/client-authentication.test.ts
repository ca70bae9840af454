import { createHash, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import {
  calculateJwkThumbprint,
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  jwtVerify,
} from 'jose';
import { describe, expect, it } from 'vitest';
import type { ClientAuthentication } from '../../src/config/client-authentication.ts';
import type { AssertionAlgorithm } from '../../src/config/config.ts';
import { InvalidFile } from '../../src/platform/mounted/mounted-secret.ts';
import { type AssertionKey, parseAssertionKey } from '../../src/token/client/assertion.ts';
import {
  authenticateClient,
  type ClientCredentials,
  publishedNames,
  repeatedParts,
  signingKey,
} from '../../src/token/client/client-authentication.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { openGrant } from './grants/granting.ts';

type SigningClient = Extract<ClientCredentials, { readonly method: 'private_key_jwt' }>;

const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

const prove = (credentials: ClientCredentials) =>
  authenticateClient(credentials, 'https://sso/token', new ManualClock());

const { privateKey: anyKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** One of each method. */
const CLIENTS: { readonly [M in ClientCredentials['method']]: Extract<ClientCredentials, { method: M }> } = {
  client_secret_basic: {
    method: 'client_secret_basic',
    encoding: 'form',
    clientId: 'the shop',
    clientSecret: 'hunter 2',
  },
  client_secret_post: { method: 'client_secret_post', clientId: 'the shop', clientSecret: 'hunter 2' },
  private_key_jwt: {
    method: 'private_key_jwt',
    clientId: 'the shop',
    key: parseAssertionKey(anyKey.export({ type: 'pkcs8', format: 'pem' }) as string, {}) as AssertionKey,
  },
  tls_client_auth: { method: 'tls_client_auth', clientId: 'the shop', certificate: 'C', privateKey: 'K' },
  kubernetes_jwt: {
    method: 'kubernetes_jwt',
    clientId: 'the shop',
    directory: '/run/secrets',
    tokenFile: 'token',
  },
  none: { method: 'none', clientId: 'the shop' },
};

/** A JWT is known by its length; nobody else has its type. */
const NOT_LOOKED_FOR = ['client_assertion', 'client_assertion_type'];

it.each(Object.values(CLIENTS))(
  'for $method it is known what a provider may repeat of a request',
  async (one) => {
    const { directory } = await mountSecret({ token: 'a.b.c' });
    const client = one.method === 'kubernetes_jwt' ? { ...one, directory } : one;
    const { authorization = '', parameters } = await prove(client);
    const pair = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString();
    const named = Object.entries(parameters).filter(([name]) => !NOT_LOOKED_FOR.includes(name));
    const sent = [...named.map(([, value]) => value), ...(pair === '' ? [] : [pair])];
    expect(repeatedParts(client)).toEqual(expect.arrayContaining(sent));
  },
);

it.each<[ClientAuthentication, readonly string[]]>([
  [{ method: 'client_secret_basic', encoding: 'form' }, ['client_secret_basic']],
  [{ method: 'client_secret_post' }, ['client_secret_post']],
  [{ method: 'private_key_jwt', keyFile: 'key' }, ['private_key_jwt']],
  // RFC 8705 §2.1.1, §2.2.1: which of them is the provider's affair.
  [{ method: 'tls_client_auth' }, ['tls_client_auth', 'self_signed_tls_client_auth']],
  [{ method: 'kubernetes_jwt', tokenFile: 'token' }, ['private_key_jwt']],
  [{ method: 'none' }, ['none']],
])('%o is offered in provider metadata as %j', (config, names) => {
  expect(publishedNames(config)).toEqual(names);
});

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

it('client_secret_post puts id and secret into the form', async () => {
  const proof = await prove({ method: 'client_secret_post', clientId: 'shop', clientSecret: 'p%+ ü' });
  expect(proof).toEqual({ parameters: { client_id: 'shop', client_secret: 'p%+ ü' } });
});

it('tls_client_auth sends only the client id', async () => {
  const proof = await prove({
    method: 'tls_client_auth',
    clientId: 'shop',
    certificate: 'C',
    privateKey: 'K',
  });
  expect(proof).toEqual({ parameters: { client_id: 'shop' } });
});

it.each([
  ['shop', { client_id: 'shop' }],
  [undefined, {}],
])('none sends only the client id, if there is one: %s', async (clientId, parameters) => {
  expect(await prove({ method: 'none', clientId })).toStrictEqual({ parameters });
});

const rsa = () => generateKeyPairSync('rsa', { modulusLength: 2048 });

describe('private_key_jwt', () => {
  const keys = {
    ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
    ES512: () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
    RS256: rsa,
    RS384: rsa,
    RS512: rsa,
    PS256: rsa,
    PS384: rsa,
    PS512: rsa,
    EdDSA: () => generateKeyPairSync('ed25519'),
  };

  function signingClient(privateKey: KeyObject, algorithm?: AssertionAlgorithm): SigningClient {
    const key = parseAssertionKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), {
      algorithm,
    });
    if ('expected' in key) throw new Error(key.expected);
    return { method: 'private_key_jwt', clientId: 'shop', key };
  }

  it.each(Object.entries(keys))(
    'with %s has an assertion that verifies and has the claims of RFC 7523 §3',
    async (alg, make) => {
      const { privateKey, publicKey } = make();
      const client = signingClient(privateKey, alg as AssertionAlgorithm);
      const { parameters } = await prove(client);
      expect(parameters).toMatchObject({ client_id: 'shop', client_assertion_type: JWT_BEARER });
      const jwk = await exportJWK(publicKey);
      const kid = await calculateJwkThumbprint(jwk);
      expect(signingKey(client)).toEqual({ keyId: kid, thumbprint: kid });
      const { payload, protectedHeader } = await jwtVerify(
        parameters['client_assertion'] ?? '',
        createLocalJWKSet({ keys: [{ ...jwk, kid, alg }] }),
        { audience: 'https://sso/token', currentDate: new Date(new ManualClock().now().wallMs) },
      );
      expect(protectedHeader).toEqual({ alg, kid, typ: 'JWT' });
      const now = new ManualClock().now().wallMs / 1000;
      expect(payload).toEqual({
        iss: 'shop',
        sub: 'shop',
        aud: 'https://sso/token',
        // A provider whose clock is half a minute behind takes it.
        iat: now - 30,
        nbf: now - 30,
        exp: now + 60,
        jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
    },
  );

  it('has the configured audience', async () => {
    const client = { ...signingClient(keys.EdDSA().privateKey), audience: 'https://sso' };
    const { parameters } = await prove(client);
    expect(decodeJwt(parameters['client_assertion'] ?? '').aud).toBe('https://sso');
  });

  it('sends the thumbprint of a certificate and no kid', async () => {
    const shop = createCertificateAuthority('Test CA').issue('shop');
    const key = parseAssertionKey(shop.key, { certificate: shop.cert });
    if ('expected' in key) throw new Error(key.expected);
    const { parameters } = await prove({ method: 'private_key_jwt', clientId: 'shop', key });
    expect(decodeProtectedHeader(parameters['client_assertion'] ?? '')).toEqual({
      alg: key.algorithm,
      typ: 'JWT',
      'x5t#S256': key.certificateThumbprint,
    });
  });

  describe('private_key_jwt with settings', () => {
    const { privateKey, publicKey } = rsa();
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

    /** Sent to a provider over a socket: its header and its claims. */
    async function sent(assertion: Record<string, unknown>, files: Record<string, string>) {
      const provider = await ScriptedTokenEndpoint.start();
      const { request } = await openGrant(
        { tokenUrl: provider.url, clientAuth: 'private_key_jwt', clientId: 'shop', assertion },
        files,
      );
      expect(await request()).toMatchObject({ result: 'success' });
      return { provider, jwt: provider.received[0]?.form.get('client_assertion') ?? '' };
    }

    it('is signed with the configured algorithm, key id and audience', async () => {
      const { jwt } = await sent(
        { keyFile: 'k.pem', keyId: 'own', algorithm: 'PS256', audience: 'https://sso' },
        { 'k.pem': pem },
      );
      const { payload, protectedHeader } = await jwtVerify(jwt, publicKey);
      expect(protectedHeader).toEqual({ alg: 'PS256', kid: 'own', typ: 'JWT' });
      expect(payload.aud).toBe('https://sso');
    });

    it('has the token endpoint as its default audience', async () => {
      const { jwt, provider } = await sent({ keyFile: 'k.pem' }, { 'k.pem': pem });
      expect(decodeJwt(jwt).aud).toBe(provider.url);
    });

    it('sends the thumbprint of the mounted certificate', async () => {
      const shop = createCertificateAuthority('Test CA').issue('shop');
      const { jwt } = await sent(
        { keyFile: 'tls.key', certificateFile: 'tls.crt' },
        { 'tls.key': shop.key, 'tls.crt': shop.cert },
      );
      const thumbprint = createHash('sha256').update(new X509Certificate(shop.cert).raw).digest('base64url');
      expect(decodeProtectedHeader(jwt)).toMatchObject({ 'x5t#S256': thumbprint });
      expect(decodeProtectedHeader(jwt)).not.toHaveProperty('kid');
    });

    it('refuses a certificate of another key', async () => {
      const { cert } = createCertificateAuthority('Test CA').issue('other');
      const { read } = await openGrant(
        {
          tokenUrl: 'https://sso/token',
          clientAuth: 'private_key_jwt',
          clientId: 'shop',
          assertion: { keyFile: 'tls.key', certificateFile: 'tls.crt' },
        },
        { 'tls.key': pem, 'tls.crt': cert },
      );
      expect(await read()).toMatchObject({
        state: 'malformed',
        detail: expect.stringContaining('tls.crt is not the certificate of the private key'),
      });
    });
  });

  it('has a different assertion each time', async () => {
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

  it('sends no request without its file, and the error names the file', async () => {
    const { directory } = await mountSecret({ other: 'a.b.c' });
    const client = { method: 'kubernetes_jwt', directory, tokenFile: 'token', clientId: 'shop' } as const;
    await expect(prove(client)).rejects.toThrow(InvalidFile);
    await expect(prove(client)).rejects.toThrow('token');
  });
});
