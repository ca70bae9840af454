import { afterAll, beforeAll } from 'vitest';
import { DJANGO } from '../providers.ts';
import { basic, clientCredentialsTests, post } from '../support/client-credentials.ts';
import { describeProvider } from '../support/describe-provider.ts';
import { type Django, startDjango } from './django.ts';

const SECRET = 'p+w %41:/=&?#"\\ äöü €';

describeProvider(DJANGO, () => {
  let django: Django;
  beforeAll(async () => {
    django = await startDjango({ shop: SECRET }, 5);
  });
  afterAll(() => django?.close());

  clientCredentialsTests(() => django, {
    clients: [basic('shop', SECRET), post('shop', SECRET)],
    refused: {
      client: basic('shop', 'not-the-right-secret'),
      said: /^rejected: status 401 invalid_client/,
    },
    shortLived: basic('shop', SECRET),
  });
});
