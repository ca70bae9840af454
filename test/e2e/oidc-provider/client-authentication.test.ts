import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { calculateJwkThumbprint, exportJWK } from 'jose';
import { describe, expect, it } from 'vitest';
import type { SecretValues } from '../../../src/platform/mounted/secret-layout.ts';
import { type Certificate, createCertificateAuthority } from '../../support/certificate-authority.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { runSidecar, type SidecarUnderTest } from '../support/sidecar.ts';
import { startTraffic, tokenId } from '../support/traffic.ts';
import { startUpstream, verifyByKeys } from '../support/upstream.ts';
import { API, startProvider } from './provider.ts';

const authority = createCertificateAuthority('oidc-provider test authority');

interface Case {
  readonly transport: 'http' | 'https';
  /** The client as it is registered with the provider. */
  readonly client: Readonly<Record<string, unknown>>;
  readonly credential: Readonly<Record<string, unknown>>;
  readonly files: SecretValues;
  readonly tokenLifetimeSeconds?: number;
}

async function start(options: Case): Promise<SidecarUnderTest> {
  const { transport, client, credential, files, tokenLifetimeSeconds = 60 } = options;
  const provider = await startProvider({
    ...(transport === 'https' ? { authority } : {}),
    clients: [client],
    tokenLifetimeSeconds,
  });
  const trust = await mountSecret({ 'ca.crt': authority.cert });
  const tls = transport === 'https' ? { tls: { caFile: join(trust.directory, 'ca.crt') } } : {};
  const upstream = await startUpstream(verifyByKeys(provider.keys, provider.issuer));
  return await runSidecar({
    credential: { tokenUrl: provider.tokenUrl, ...tls, ...credential },
    files,
    upstream,
  });
}

describe.each(['http', 'https'] as const)('oidc-provider over %s', (transport) => {
  it.each([
    ['client_secret_basic', 'shop', 'p+w %41:/=&?#"\\ ~'],
    ['client_secret_post', 'shop', 'p+w %41:/=&?#"\\ ~'],
    ['client_secret_basic', 'shop:with/+ %', 'secret'],
  ])('%s: %s', async (method, client_id, client_secret) => {
    const sidecar = await start({
      transport,
      client: { client_id, client_secret, token_endpoint_auth_method: method },
      credential: { clientAuth: method },
      files: { client_id, client_secret },
    });
    expect(await sidecar.request()).toMatchObject({ status: 200, body: { claims: { client_id } } });
  });

  it.each([
    ['ES256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' })],
    ['RS256', () => generateKeyPairSync('rsa', { modulusLength: 2048 })],
    ['EdDSA', () => generateKeyPairSync('ed25519')],
  ] as const)('private_key_jwt: %s', async (alg, generate) => {
    const { privateKey, publicKey } = generate();
    const jwk = await exportJWK(publicKey);
    const sidecar = await start({
      transport,
      client: {
        client_id: 'shop',
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: alg,
        jwks: { keys: [{ ...jwk, kid: await calculateJwkThumbprint(jwk), alg, use: 'sig' }] },
      },
      credential: { clientAuth: 'private_key_jwt' },
      files: {
        client_id: 'shop',
        private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      },
    });
    expect(await sidecar.request()).toMatchObject({ status: 200, body: { claims: { client_id: 'shop' } } });
  });

  it('scope and resource narrow the token', async () => {
    const sidecar = await start({
      transport,
      client: { client_id: 'shop', client_secret: 's3cret-of-shop' },
      credential: { scope: 'read', parameters: { resource: 'https://other.example.com' } },
      files: { client_id: 'shop', client_secret: 's3cret-of-shop' },
    });
    expect((await sidecar.request()).body).toMatchObject({
      claims: { scope: 'read', aud: 'https://other.example.com' },
    });
  });

  it('without them the token has the defaults, and is renewed under traffic', async () => {
    const sidecar = await start({
      transport,
      client: { client_id: 'shop', client_secret: 's3cret-of-shop' },
      credential: {},
      files: { client_id: 'shop', client_secret: 's3cret-of-shop' },
      tokenLifetimeSeconds: 5,
    });
    const traffic = startTraffic(sidecar);
    const seen = new Set<string | undefined>();
    await traffic.until(({ body }) => seen.add(tokenId(body)).size === 3);
    const answers = await traffic.stop();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(answers[0]?.body).toMatchObject({ claims: { aud: API } });
  });
});

describe('oidc-provider with client certificates', () => {
  const shop = authority.issue('shop');
  const own = createCertificateAuthority('shop alone').issue('shop');

  const startWith = (certificate: Certificate) =>
    start({
      transport: 'https',
      client: {
        client_id: 'shop',
        token_endpoint_auth_method: 'tls_client_auth',
        tls_client_auth_subject_dn: 'CN=shop',
      },
      credential: { clientAuth: 'tls_client_auth' },
      files: { client_id: 'shop', 'tls.crt': certificate.cert, 'tls.key': certificate.key },
    });

  it('tls_client_auth: a certificate of the trusted authority with the registered subject', async () => {
    const sidecar = await startWith(shop);
    expect(await sidecar.request()).toMatchObject({ status: 200, body: { claims: { client_id: 'shop' } } });
  });

  it('tls_client_auth: the same subject from another authority is refused', async () => {
    const sidecar = await startWith(own);
    expect(await sidecar.request()).toMatchObject({ status: 503, error: 'token_unavailable' });
    expect(sidecar.snapshot().lastFailure).toMatchObject({ result: 'rejected' });
  });

  it('self_signed_tls_client_auth: the very certificate that is registered', async () => {
    const leaf = new X509Certificate(own.cert);
    const jwk = await exportJWK(leaf.publicKey);
    const sidecar = await start({
      transport: 'https',
      client: {
        client_id: 'shop',
        token_endpoint_auth_method: 'self_signed_tls_client_auth',
        jwks: { keys: [{ ...jwk, x5c: [leaf.raw.toString('base64')] }] },
      },
      credential: { clientAuth: 'tls_client_auth' },
      files: { client_id: 'shop', 'tls.crt': own.cert, 'tls.key': own.key },
    });
    expect(await sidecar.request()).toMatchObject({ status: 200, body: { claims: { client_id: 'shop' } } });
  });
});
