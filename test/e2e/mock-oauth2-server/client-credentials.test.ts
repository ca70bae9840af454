import { afterAll, beforeAll, expect, it } from 'vitest';
import { MOCK_OAUTH2_SERVER } from '../providers.ts';
import { basic, clientCredentialsTests, post, runFor } from '../support/client-credentials.ts';
import { describeProvider } from '../support/describe-provider.ts';
import { signingKey } from '../support/signing-keys.ts';
import { type Mock, startMock } from './mock.ts';

describeProvider(MOCK_OAUTH2_SERVER, () => {
  let mock: Mock;
  beforeAll(async () => {
    mock = await startMock();
  });
  afterAll(() => mock?.close());

  clientCredentialsTests(() => mock, {
    clients: [basic('shop', 'any-secret-will-do'), post('shop', 'any-secret-will-do')],
    shortLived: basic('shop', 'any-secret-will-do'),
  });

  it('private_key_jwt', async () => {
    const { privateKey } = await signingKey('RS256');
    const sidecar = await runFor(mock, {
      name: 'private_key_jwt',
      id: 'shop',
      credential: { clientAuth: 'private_key_jwt' },
      files: { client_id: 'shop', private_key: privateKey },
    });
    expect(await sidecar.request()).toMatchObject({ status: 200, body: { claims: { sub: 'shop' } } });
  });
});
