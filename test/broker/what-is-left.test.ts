/** What is left of a token when it is given: an asker must have the time to renew it in peace. */

import { expect, it, onTestFinished } from 'vitest';
import { createGrants, type Grants } from '../../src/broker/brokered-tokens.ts';
import type { BrokerResponse } from '../../src/broker/messages.ts';
import { createLogger } from '../../src/platform/log/logger.ts';
import type { TokenSource } from '../../src/token/token-source.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { type ManualClock, settle } from '../support/manual-clock.ts';
import { failure, openSource, token } from '../token/opened-source.ts';

const MAX_WAIT_MS = 5000;

const CREDENTIAL = {
  name: 'payments/payments',
  config: credentialConfig({ tokenUrl: 'http://127.0.0.1/token' }),
  volumes: [],
};

/** Of a life, what a sidecar leaves for the way and for clocks that count in seconds. */
const KEPT_BACK_MS = 1250;

function grantsOf(source: TokenSource, clock: ManualClock): Grants {
  const grants = createGrants({
    credentials: { now: () => CREDENTIAL },
    objects: { watch: () => () => undefined },
    openSource: () => Promise.resolve(source),
    closeSource: () => Promise.resolve(),
    clock,
    log: createLogger('silent'),
  });
  onTestFinished(() => grants.close());
  return grants;
}

/** A broker with a token of such a life, of which so much is left, and whose renewal is under way. */
async function start(lifeMs: number, leftMs: number) {
  const { source, clock, last } = await openSource();
  const grants = grantsOf(source, clock);
  await last().answer(token('token-1', lifeMs));
  await clock.advance(lifeMs - KEPT_BACK_MS - leftMs);
  expect(source.snapshot().grantInFlight).toBe(true);
  return { grants, clock, last };
}

/** Of a life, the least that is given of it. */
const LIVES: readonly (readonly [lifeMs: number, leastMs: number])[] = [
  [3_600_000, 30_000],
  [300_000, 30_000],
  [100_000, 20_000],
  [60_000, 12_000],
];

it.each(LIVES)(
  'of a token of %i ms it gives %i ms, in whole seconds that are there',
  async (lifeMs, leastMs) => {
    for (const leftMs of [leastMs, leastMs + 999]) {
      const { grants } = await start(lifeMs, leftMs);
      expect(await grants.answer(CREDENTIAL)).toEqual({
        kind: 'given',
        token: 'token-1',
        expiresInSeconds: leastMs / 1000,
      });
    }
  },
);

it.each(LIVES)(
  'of a token of %i ms it gives nothing less than %i ms: who asks waits for the next',
  async (lifeMs, leastMs) => {
    const { grants, last } = await start(lifeMs, leastMs - 1);
    const answers = [grants.answer(CREDENTIAL), grants.answer(CREDENTIAL)];
    await settle();
    await last().answer(token('token-2', lifeMs));
    for (const answer of answers) expect(await answer).toMatchObject({ kind: 'given', token: 'token-2' });
  },
);

it.each([1000, 2000, 5000, 10_000, 20_000, 24_000])(
  'of a token of %i ms it gives what may be sent until the next is there',
  async (lifeMs) => {
    const { source, clock, grants: asked } = await openSource();
    const grants = grantsOf(source, clock);
    const answers: (BrokerResponse | Promise<BrokerResponse>)[] = [];
    let granted = 0;
    for (let passedMs = 0; passedMs < 3 * lifeMs; passedMs += 50) {
      answers.push(grants.answer(CREDENTIAL));
      await clock.advance(50);
      for (; granted < asked.length; granted++)
        await asked[granted]?.answer(token(`token-${granted}`, lifeMs));
    }
    for (const answer of answers) expect(await answer).toMatchObject({ kind: 'given' });
    expect(granted).toBeGreaterThan(2);
  },
);

it('no caller waits longer than 5 s', async () => {
  const { grants, clock } = await start(300_000, 29_000);
  const answer = grants.answer(CREDENTIAL);
  await clock.advance(MAX_WAIT_MS);
  expect(await answer).toMatchObject({ kind: 'refused', code: 'temporarily_unavailable' });
});

it('while the provider fails, Retry-After is the time of the next try', async () => {
  const { grants, last } = await start(300_000, 29_000);
  await last().answer(failure);
  const answer = await grants.answer(CREDENTIAL);
  expect(answer).toMatchObject({ kind: 'refused', code: 'temporarily_unavailable' });
  expect((answer as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(0);
});
