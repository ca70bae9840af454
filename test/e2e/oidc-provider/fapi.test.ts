/** FAPI 2.0 Security Profile: a provider that enforces it, and the settings that meet it. */

import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { calculateJwkThumbprint, exportJWK } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { startProvingUpstream } from '../support/proving-upstream.ts';
import { runSidecar } from '../support/sidecar.ts';
import { API, startProvider } from './provider.ts';

const authority = createCertificateAuthority('fapi test authority');

const KEYS = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
};

type Algorithm = keyof typeof KEYS;

/** @param audience of the assertions; by default the sidecar's own. */
async function start(alg: Algorithm, audience: 'issuer' | 'token endpoint') {
  const { privateKey, publicKey } = KEYS[alg]();
  const provider = await startProvider({
    authority,
    clients: [
      {
        client_id: 'shop',
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: alg,
        dpop_bound_access_tokens: true,
        jwks: { keys: [await published(publicKey, alg)] },
      },
    ],
    tokenLifetimeSeconds: 60,
    requiresNonce: true,
    fapi: true,
  });
  const { issuer, keys, tokenUrl } = provider;
  const trust = await mountSecret({ 'ca.crt': authority.cert });
  const sidecar = await runSidecar({
    credential: {
      issuerUrl: issuer,
      clientAuth: 'private_key_jwt',
      assertion: {
        audience: audience === 'issuer' ? issuer : tokenUrl,
        ...(alg === 'PS256' ? { algorithm: alg } : {}),
      },
      proofOfPossession: 'dpop',
      tls: { caFile: join(trust.directory, 'ca.crt') },
    },
    files: {
      client_id: 'shop',
      private_key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    },
    upstream: await startProvingUpstream({ issuer, jwksUri: `${issuer}/jwks`, keys, audience: API }),
  });
  return sidecar;
}

async function published(publicKey: KeyObject, alg: Algorithm): Promise<object> {
  const jwk = await exportJWK(publicKey);
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg, use: 'sig' };
}

describe('oidc-provider with its FAPI 2.0 profile', () => {
  it.each(['ES256', 'PS256'] as const)('%s: a token is granted, and oauth4webapi takes it', async (alg) => {
    const sidecar = await start(alg, 'issuer');
    expect(await sidecar.request()).toMatchObject({ status: 200, body: { claims: { client_id: 'shop' } } });
    expect(sidecar.grants()).toEqual(['startup success']);
  });

  it('it refuses assertions for the token endpoint', async () => {
    const sidecar = await start('ES256', 'token endpoint');
    expect(await sidecar.request()).toMatchObject({ status: 503, error: 'token_unavailable' });
    expect(sidecar.snapshot().lastFailure?.detail).toMatch(/^status 401 invalid_client/);
  });
});

it('a provider with TLS 1.1 gets no request', async () => {
  let requests = 0;
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  const server = createServer({ ...authority.issue('old', '127.0.0.1'), ...old }, () => {
    requests += 1;
  });
  const refusals: unknown[] = [];
  server.on('tlsClientError', (error: NodeJS.ErrnoException) => refusals.push(error.code));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const trust = await mountSecret({ 'ca.crt': authority.cert });
  const sidecar = await runSidecar({
    credential: {
      tokenUrl: `https://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
      tls: { caFile: join(trust.directory, 'ca.crt') },
    },
    files: { client_id: 'shop', client_secret: 's3cret-of-shop' },
    upstream: { url: 'http://127.0.0.1:9' },
  });
  await expect.poll(() => sidecar.snapshot().lastFailure?.detail).toBe('EPROTO');
  expect(new Set(refusals)).toEqual(new Set(['ERR_SSL_UNSUPPORTED_PROTOCOL']));
  expect(requests).toBe(0);
});
