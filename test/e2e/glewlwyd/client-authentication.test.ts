import { generateKeyPairSync } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SecretValues } from '../../../src/platform/mounted/secret-layout.ts';
import { GLEWLWYD } from '../providers.ts';
import { describeProvider } from '../support/describe-provider.ts';
import { runSidecar } from '../support/sidecar.ts';
import { startUpstream, verifyByKeys } from '../support/upstream.ts';
import { type Glewlwyd, SCOPE, startGlewlwyd } from './glewlwyd.ts';

describeProvider(GLEWLWYD, () => {
  describe.each(['http', 'https'] as const)('over %s', (transport) => {
    let glewlwyd: Glewlwyd;
    beforeAll(async () => {
      glewlwyd = await startGlewlwyd(transport);
    });
    afterAll(() => glewlwyd?.close());

    async function start(credential: Readonly<Record<string, unknown>>, files: SecretValues) {
      const upstream = await startUpstream(verifyByKeys(glewlwyd.keys, glewlwyd.issuer));
      return await runSidecar({ credential: { ...glewlwyd.credential, ...credential }, files, upstream });
    }

    it.each([
      ['client_secret_basic', { clientAuth: 'client_secret_basic' }, 'plain-secret'],
      ['client_secret_post', { clientAuth: 'client_secret_post' }, 'p+w %41:/=&?#"\\ äöü €'],
      // It compares the halves of Basic as they stand, as RFC 7617 has it.
      ['client_secret_basic, raw', { basicEncoding: 'raw' }, 'p+w %41:/=&?#"\\ äöü €'],
    ])('%s', async (name, credential, client_secret) => {
      const client_id = `shop ${name}`.replaceAll(/[ ,]+/g, '-');
      const method = name.split(',')[0];
      await glewlwyd.addClient({ client_id, client_secret, token_endpoint_auth_method: [method] });
      const sidecar = await start(credential, { client_id, client_secret });
      expect(await sidecar.request()).toMatchObject({
        status: 200,
        body: { claims: { client_id, scope: SCOPE } },
      });
    });

    it.each([
      ['ES256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' })],
      ['RS256', () => generateKeyPairSync('rsa', { modulusLength: 2048 })],
      ['EdDSA', () => generateKeyPairSync('ed25519')],
    ] as const)('private_key_jwt: %s', async (alg, generate) => {
      const { privateKey, publicKey } = generate();
      const jwk = await exportJWK(publicKey);
      const client_id = `shop-${alg}`;
      await glewlwyd.addClient({
        client_id,
        token_endpoint_auth_method: ['private_key_jwt'],
        jwks: { keys: [{ ...jwk, kid: await calculateJwkThumbprint(jwk), alg, use: 'sig' }] },
      });
      const private_key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      const sidecar = await start({ clientAuth: 'private_key_jwt' }, { client_id, private_key });
      expect(await sidecar.request()).toMatchObject({ status: 200, body: { claims: { client_id } } });
    });

    it('a wrong secret is refused', async () => {
      const client_id = 'shop-wrong';
      await glewlwyd.addClient({
        client_id,
        client_secret: 'right',
        token_endpoint_auth_method: ['client_secret_basic'],
      });
      const credential = { timeouts: { wait: '1s' } };
      const sidecar = await start(credential, { client_id, client_secret: 'not-the-right-one' });
      expect(await sidecar.request()).toMatchObject({ status: 503, error: 'token_unavailable' });
      // 403 and no body: it says no, and not why (RFC 9110 §15.5.4).
      expect(sidecar.snapshot().lastFailure).toMatchObject({
        result: 'rejected',
        detail: 'status 403',
      });
    });

    if (transport === 'http') return;

    it('tls_client_auth', async () => {
      const client_id = 'shop-tls';
      const { cert, key } = glewlwyd.authority.issue(client_id, 'shop.example.com');
      await glewlwyd.addClient({
        client_id,
        token_endpoint_auth_method: ['tls_client_auth'],
        tls_client_auth_san_dns: 'shop.example.com',
      });
      const sidecar = await start(
        { clientId: client_id, clientAuth: 'tls_client_auth' },
        { 'tls.crt': cert, 'tls.key': key },
      );
      expect(await sidecar.request()).toMatchObject({ status: 200, body: { claims: { client_id } } });
    });
  });
});
