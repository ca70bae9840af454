/** Others' provider, and a verifier that others wrote (oauth4webapi). */

import { generateKeyPairSync } from 'node:crypto';
import { exportJWK } from 'jose';
import { describe, expect, it } from 'vitest';
import type { SecretValues } from '../../../src/platform/mounted/secret-layout.ts';
import { type Nonces, startProvingUpstream } from '../support/proving-upstream.ts';
import { runSidecar, type SidecarUnderTest } from '../support/sidecar.ts';
import { trafficUntilNewToken } from '../support/traffic.ts';
import { API, startProvider } from './provider.ts';

interface Case {
  readonly files?: SecretValues;
  readonly dpop?: object;
  readonly nonces?: Nonces;
  readonly requiresNonce?: boolean;
  readonly tokenLifetimeSeconds?: number;
}

async function start({ files, dpop, nonces, requiresNonce, tokenLifetimeSeconds = 60 }: Case) {
  const client = { client_id: 'shop', client_secret: 'secret', dpop_bound_access_tokens: true };
  const provider = await startProvider({
    clients: [client],
    tokenLifetimeSeconds,
    ...(requiresNonce === undefined ? {} : { requiresNonce }),
  });
  const upstream = await startProvingUpstream({
    issuer: provider.issuer,
    jwksUri: `${provider.issuer}/jwks`,
    audience: API,
    ...(nonces === undefined ? {} : { nonces }),
  });
  const credential = { tokenUrl: provider.tokenUrl, proofOfPossession: 'dpop', ...(dpop && { dpop }) };
  const sidecar = await runSidecar({
    credential,
    files: { client_id: 'shop', client_secret: 'secret', ...files },
    upstream,
  });
  return { sidecar, upstream };
}

async function thumbprint(sidecar: SidecarUnderTest): Promise<unknown> {
  const { body } = await sidecar.request();
  return 'claims' in body ? (body.claims['cnf'] as { jkt?: string }).jkt : body;
}

const KEYS = {
  'ES256, PEM': async () =>
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
  'ES384, PEM': async () =>
    generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({ type: 'sec1', format: 'pem' }),
  'EdDSA, JWK': async () => JSON.stringify(await exportJWK(generateKeyPairSync('ed25519').privateKey)),
  'RS256, PEM': async () =>
    generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
  'PS256, JWK': async () =>
    JSON.stringify({
      ...(await exportJWK(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey)),
      alg: 'PS256',
    }),
};

describe('tokens that oidc-provider binds to a key', () => {
  it('of the process: oauth4webapi takes token and proof', async () => {
    const { sidecar } = await start({});
    expect(await sidecar.request()).toMatchObject({ status: 200, body: { claims: { client_id: 'shop' } } });
    expect(await thumbprint(sidecar)).toMatch(/^[\w-]{43}$/);
  });

  it.each(Object.entries(KEYS))('of the Secret (%s): oauth4webapi takes token and proof', async (_, make) => {
    const { sidecar } = await start({ files: { key: String(await make()) }, dpop: { keyFile: 'key' } });
    expect(await sidecar.request()).toMatchObject({ status: 200 });
  });

  it('a provider that wants its nonce in each proof gets it, and the grant is no failure', async () => {
    const { sidecar } = await start({ requiresNonce: true });
    expect(await sidecar.request()).toMatchObject({ status: 200 });
    expect(sidecar.grants()).toEqual(['startup success']);
  });

  it.each(['lasting', 'once'] as const)(
    'an API that wants its nonce (%s) in each proof answers 100 requests at once',
    async (nonces) => {
      const { sidecar, upstream } = await start({ nonces });
      const answers = await Promise.all(Array.from({ length: 100 }, () => sidecar.request()));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
      expect(upstream.tokens.size).toBe(1);
      expect(sidecar.grants()).toEqual(['startup success']);
    },
  );

  it('another key in the Secret: a new token is bound to it, and no request fails', async () => {
    const [first, second] = [String(await KEYS['ES256, PEM']()), String(await KEYS['EdDSA, JWK']())];
    const { sidecar } = await start({ files: { key: first }, dpop: { keyFile: 'key' } });
    const before = await sidecar.request();
    const old = await thumbprint(sidecar);
    await sidecar.remount({ client_id: 'shop', client_secret: 'secret', key: second });
    const answers = await trafficUntilNewToken(sidecar, before);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await thumbprint(sidecar)).not.toBe(old);
  });

  it('tokens of 3 s are renewed under traffic, and no request fails', async () => {
    const { sidecar } = await start({ tokenLifetimeSeconds: 3, requiresNonce: true, nonces: 'once' });
    const answers = await trafficUntilNewToken(sidecar, await sidecar.request());
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });
});
