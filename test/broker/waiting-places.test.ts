/** Requests that wait for the verdict on their tokens, while the API server gives none. */

import { expect, it } from 'vitest';
import { createTokenEndpoint } from '../../src/broker/token-endpoint.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { formOf } from './running-broker.ts';

const DECISION_MS = 8000;

const MAX_WAITING_OF_TOKEN = 128;

const MAX_WAITING = 2048;

const CALLER = { kind: 'service_account', namespace: 'shop', serviceAccount: 'web' } as const;
const ADDRESS = { kind: 'address', profile: 'payments', credential: 'payments' } as const;

/** Whose last verdict is known, and due to be renewed. */
const KNOWN = 'k.n.own';

function hanging() {
  const clock = new ManualClock();
  const verified: string[] = [];
  const endpoint = createTokenEndpoint({
    verify(token, mayWait) {
      if (!mayWait) return token === KNOWN ? { kind: 'accepted', caller: CALLER } : undefined;
      verified.push(token);
      return new Promise<never>(() => undefined);
    },
    credentials: { unread: () => undefined, find: () => undefined, now: () => undefined },
    grants: { answer: () => Promise.reject(new Error('unasked')), size: 0, close: () => Promise.resolve() },
    clock,
    log: captureLog().log,
  });
  const codes: string[] = [];
  return {
    clock,
    verified,
    /** Of the answers that have come. */
    codes,
    async ask(token: string): Promise<void> {
      const answer = await endpoint(ADDRESS, Buffer.from(formOf(token)), clock.monotonicMs());
      codes.push(answer.kind === 'refused' ? answer.code : answer.kind);
    },
  };
}

it('one too many is answered at once, and its token not verified', async () => {
  const { clock, verified, codes, ask } = hanging();
  for (let index = 0; index <= MAX_WAITING; index++) void ask(`a.b.c${index}`);
  await clock.advance(1);
  expect(codes).toEqual(['temporarily_unavailable']);
  expect(verified).toHaveLength(MAX_WAITING);
});

it('the last verdict on a known token holds meanwhile', async () => {
  const { clock, codes, ask } = hanging();
  for (let index = 0; index < MAX_WAITING; index++) void ask(`a.b.c${index}`);
  void ask(KNOWN);
  await clock.advance(1);
  expect(codes).toEqual(['unauthorized_client']);
});

it('one token takes few of the places', async () => {
  const { clock, verified, ask } = hanging();
  for (let times = 0; times < MAX_WAITING; times++) void ask('a.b.c');
  void ask('o.t.her');
  await clock.advance(1);
  expect(verified).toEqual([...Array.from({ length: MAX_WAITING_OF_TOKEN }, () => 'a.b.c'), 'o.t.her']);
});

it('places are given back once their requests have been answered', async () => {
  const { clock, verified, codes, ask } = hanging();
  for (let round = 1; round <= 2; round++) {
    for (let times = 0; times < MAX_WAITING_OF_TOKEN; times++) void ask('a.b.c');
    await clock.advance(DECISION_MS);
    expect([verified.length, codes.length]).toEqual([
      round * MAX_WAITING_OF_TOKEN,
      round * MAX_WAITING_OF_TOKEN,
    ]);
  }
});
