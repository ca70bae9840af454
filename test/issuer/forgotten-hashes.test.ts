/** What is known of a hash is forgotten with it: a client that comes back is checked anew. */

import { expect, it } from 'vitest';
import { createCallerVerification } from '../../src/issuer/caller-verification.ts';
import { createClientSet, createClientStore, defineClients } from '../../src/issuer/clients.ts';
import { createDerivationQueue, deriveScrypt, hashSecret } from '../../src/issuer/secret-hashing.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

const secretHash = await hashSecret('s3cret', { ln: 1, r: 1, p: 1 });
const WITH = defineClients([{ clientId: 'shop', secretHash }]);
const WITHOUT = createClientSet([]);

function start() {
  const store = createClientStore(WITH);
  const clock = new ManualClock();
  let derivations = 0;
  let held: Promise<void> | undefined;
  const queue = createDerivationQueue(
    async (...work) => {
      derivations++;
      await held;
      return await deriveScrypt(...work);
    },
    { concurrent: 2, waiting: 8 },
  );
  const authenticate = createCallerVerification(store, queue, { clock, log: captureLog().log });
  return {
    clock,
    store,
    derivations: () => derivations,
    ask: (field: string | undefined = `Basic ${Buffer.from('shop:s3cret').toString('base64')}`) =>
      authenticate(field, '192.0.2.1'),
    holdUntil: (promise: Promise<void>) => {
      held = promise;
    },
  };
}

it('a hash is forgotten when its client is removed and added again', async () => {
  const { store, ask, derivations } = start();
  for (let time = 0; time < 3; time++) expect(await ask()).toMatchObject({ client: { clientId: 'shop' } });
  expect(derivations()).toBe(1);
  store.replace(WITHOUT);
  expect(await ask()).toMatchObject({ client: { code: 'invalid_client' } });
  store.replace(WITH);
  expect(await ask()).toMatchObject({ client: { clientId: 'shop' } });
  expect(derivations()).toBe(2);
});

it('a hash is forgotten when its client is removed during the check', async () => {
  const { store, ask, derivations, holdUntil, clock } = start();
  const { promise, resolve } = Promise.withResolvers<void>();
  holdUntil(promise);
  const first = ask();
  store.replace(WITHOUT);
  resolve();
  // A wrong secret is answered in its time.
  await until(() => clock.pendingTimers !== 0);
  await clock.advance(1000);
  expect(await first).toMatchObject({ client: { code: 'invalid_client' } });
  store.replace(WITH);
  expect(await ask()).toMatchObject({ client: { clientId: 'shop' } });
  expect(derivations()).toBe(2);
});

it.each([
  [undefined, 'is required'],
  ['Bearer x', 'not well-formed HTTP Basic'],
])('what is no Basic field (%s) costs nothing and says so', async (field, why) => {
  const { ask, derivations } = start();
  const answer = field === undefined ? await startedWithout() : await ask(field);
  expect(answer).toEqual({
    client: expect.objectContaining({ code: 'invalid_client', description: expect.stringContaining(why) }),
  });
  expect(derivations()).toBe(0);
});

function startedWithout() {
  const queue = createDerivationQueue(deriveScrypt, { concurrent: 1, waiting: 1 });
  const options = { clock: new ManualClock(), log: captureLog().log };
  return createCallerVerification(createClientStore(WITH), queue, options)(undefined, '192.0.2.1');
}
