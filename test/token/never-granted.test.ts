import { expect, it } from 'vitest';
import type { TokenResponse } from '../../src/token/provider/token-response.ts';
import { whyNeverGranted } from '../../src/token/why-no-token.ts';
import { failure, openSource, rejection, token } from './opened-source.ts';

const CONFIG = { name: 'crm', tokenUrl: 'https://sso.example.com/token?tenant=a', directory: '/secret' };

async function after(outcome: TokenResponse) {
  const { source, last } = await openSource();
  await last().answer(outcome);
  return whyNeverGranted(CONFIG, source.snapshot());
}

it('is nothing once there was a token', async () => {
  expect(await after(token('T1'))).toBeUndefined();
});

it('has the code of the reason, and the URL without what its query holds', async () => {
  expect(await after(rejection)).toEqual({
    code: 'credentials_rejected',
    message:
      'credential crm: https://sso.example.com/token?… rejected the client (status 401 invalid_client): compare the Secret that is mounted at /secret with the client there',
  });
  expect(await after(failure)).toMatchObject({ code: 'provider_unavailable' });
});

it('says of unusable credentials what is wrong with them', async () => {
  const { source } = await openSource({ state: 'missing', detail: '/secret/client_id does not exist' });
  expect(whyNeverGranted(CONFIG, source.snapshot())).toEqual({
    code: 'configuration',
    message:
      'credential crm: no token was asked of https://sso.example.com/token?…, because /secret/client_id does not exist: mend the Secret that is mounted at /secret',
  });
});

it('says so where the provider has not answered yet', async () => {
  const { source } = await openSource();
  expect(whyNeverGranted(CONFIG, source.snapshot())).toMatchObject({
    code: 'provider_unavailable',
    message: expect.stringContaining('(it has not answered yet)'),
  });
});
