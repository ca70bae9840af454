import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SPRING } from '../providers.ts';
import { basic, clientCredentialsTests, post, runFor } from '../support/client-credentials.ts';
import { describeProvider } from '../support/describe-provider.ts';
import { runSidecar } from '../support/sidecar.ts';
import { type SigningKey, signingKey } from '../support/signing-keys.ts';
import { startTraffic } from '../support/traffic.ts';
import { type Spring, startSpring, startSpringApi } from './spring.ts';

const SECRET = 'p+w %41:/=&?#"\\ äöü €';

describeProvider(SPRING, () => {
  let spring: Spring;
  let key: SigningKey;
  let published: Server;
  beforeAll(async () => {
    key = await signingKey('ES256');
    published = createServer((_, response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [key.jwk] }));
    });
    await new Promise<void>((resolve) => published.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(published.address() as AddressInfo).port}/`;
    spring = await startSpring({
      shop: { method: 'client_secret_basic', secret: SECRET },
      // It wants no secret twice.
      'shop-post': { method: 'client_secret_post', secret: `${SECRET}-post` },
      'shop-short': { method: 'client_secret_basic', secret: `${SECRET}-short`, seconds: 5 },
      'shop-signing': { method: 'private_key_jwt', keys: { url, algorithm: 'ES256' } },
    });
  });
  afterAll(async () => {
    published?.closeAllConnections();
    published?.close();
    await spring?.close();
  });

  clientCredentialsTests(() => spring, {
    clients: [basic('shop', SECRET), post('shop-post', `${SECRET}-post`)],
    refused: {
      client: basic('shop', 'not-the-right-secret'),
      said: /^rejected: status 401 invalid_client/,
    },
    shortLived: basic('shop-short', `${SECRET}-short`),
  });

  it('private_key_jwt: ES256', async () => {
    const sidecar = await runFor(spring, {
      name: 'private_key_jwt',
      id: 'shop-signing',
      credential: { clientAuth: 'private_key_jwt' },
      files: { client_id: 'shop-signing', private_key: key.privateKey },
    });
    expect(await sidecar.request()).toMatchObject({
      status: 200,
      body: { claims: { sub: 'shop-signing' } },
    });
  });

  it("bound tokens (DPoP): Spring Security's resource server takes token and proof, renewed under traffic", async () => {
    const { credential, files } = basic('shop-short', `${SECRET}-short`, { proofOfPossession: 'dpop' });
    const upstream = { url: await startSpringApi(spring) };
    const sidecar = await runSidecar({
      credential: { tokenUrl: spring.tokenUrl, ...credential },
      files,
      upstream,
    });
    expect(await sidecar.request()).toMatchObject({
      status: 200,
      body: { claims: { sub: 'shop-short', cnf: { jkt: expect.stringMatching(/^[\w-]{43}$/) } } },
    });
    const traffic = startTraffic(sidecar);
    await traffic.until(() => sidecar.grants().includes('scheduled success'));
    await traffic.until(({ status }) => status === 200);
    expect(new Set((await traffic.stop()).map(({ status }) => status))).toEqual(new Set([200]));
  });
});
