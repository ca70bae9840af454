import { afterAll, beforeAll, expect, it } from 'vitest';
import { HYDRA } from '../providers.ts';
import { basic, clientCredentialsTests, post, runFor } from '../support/client-credentials.ts';
import { describeProvider } from '../support/describe-provider.ts';
import { type SigningAlgorithm, signingKey } from '../support/signing-keys.ts';
import { type Hydra, startHydra } from './hydra.ts';

const SECRET = 'p+w %41:/=&?#"\\ ~';

describeProvider(HYDRA, () => {
  let hydra: Hydra;
  beforeAll(async () => {
    hydra = await startHydra();
    const clients = { shop: 'client_secret_basic', 'shop-post': 'client_secret_post' };
    for (const [client_id, method] of Object.entries(clients)) {
      await hydra.addClient({ client_id, client_secret: SECRET, token_endpoint_auth_method: method });
    }
    await hydra.addClient({
      client_id: 'shop-short',
      client_secret: SECRET,
      token_endpoint_auth_method: 'client_secret_basic',
      client_credentials_grant_access_token_lifespan: '5s',
    });
  });
  afterAll(() => hydra?.close());

  clientCredentialsTests(() => hydra, {
    clients: [basic('shop', SECRET), post('shop-post', SECRET)],
    refused: {
      client: basic('shop', 'not-the-right-secret'),
      said: /^rejected: status 401 invalid_client/,
    },
    shortLived: basic('shop-short', SECRET),
  });

  /** @param privateKey that it signs with, in place of the one that it is registered with. */
  async function signing(algorithm: SigningAlgorithm, id: string, privateKey?: string) {
    const { jwk, privateKey: own } = await signingKey(algorithm);
    await hydra.addClient({
      client_id: id,
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_signing_alg: algorithm,
      jwks: { keys: [jwk] },
    });
    return {
      name: id,
      id,
      credential: { clientAuth: 'private_key_jwt', assertion: { algorithm, keyId: jwk.kid } },
      files: { client_id: id, private_key: privateKey ?? own },
    };
  }

  it.each<[SigningAlgorithm, number]>([
    ['RS256', 0],
    ['PS256', 0],
    ['ES256', 0],
    // It refuses what was issued in its future, by one second.
    ['ES256', 2],
    ['ES256', 25],
    ['ES256', -25],
  ])('private_key_jwt: %s, of a clock that is %i s ahead', async (algorithm, ahead) => {
    const client = await signing(algorithm, `shop-${algorithm}-${ahead + 100}`);
    const sidecar = await runFor(hydra, client, ahead);
    expect(await sidecar.request()).toMatchObject({
      status: 200,
      body: { claims: { client_id: client.id } },
    });
  });

  it('private_key_jwt with another key is refused', async () => {
    const { privateKey } = await signingKey('ES256');
    const sidecar = await runFor(hydra, await signing('ES256', 'shop-other-key', privateKey));
    expect(await sidecar.request()).toMatchObject({ status: 503, error: 'token_unavailable' });
    expect(sidecar.grants()[0]).toMatch(/^rejected: status 401 invalid_client/);
  });
});
