import { expect, it } from 'vitest';
import { createCallerRates, MOST_KEPT, OF_ONE_CALLER } from '../../src/broker/caller-rates.ts';
import type { ServiceAccountCaller } from '../../src/callers/caller.ts';
import { ManualClock } from '../support/manual-clock.ts';

function caller(name: string, serviceAccount = 'web'): ServiceAccountCaller {
  return { kind: 'service_account', namespace: 'shop', serviceAccount, pod: { name, uid: name } };
}

it('has a burst for each pod, and then so many a second', async () => {
  const clock = new ManualClock();
  const rates = createCallerRates(clock);
  const served = (times: number, who = caller('a')): number =>
    Array.from({ length: times }, () => rates.take(who)).filter(Boolean).length;
  expect(served(100)).toBe(OF_ONE_CALLER.burst);
  expect(served(1, caller('b'))).toBe(1);
  await clock.advance(3000);
  expect(served(100)).toBe(3 * OF_ONE_CALLER.perSecond);
  await clock.advance(3_600_000);
  expect(served(100)).toBe(OF_ONE_CALLER.burst);
});

it('keeps 20 000 allowances and no more, of those who asked last', () => {
  const rates = createCallerRates(new ManualClock());
  const spend = (who: ServiceAccountCaller): void => {
    while (rates.take(who));
  };
  spend(caller('first'));
  spend(caller('second'));
  for (let n = 0; n < MOST_KEPT - 2; n++) rates.take(caller(`pod-${n}`));
  expect(rates.size).toBe(20_000);
  // Asking once more it is the latest, and what it has spent stays spent.
  expect(rates.take(caller('first'))).toBe(false);
  rates.take(caller('one more'));
  expect(rates.size).toBe(20_000);
  expect(rates.take(caller('first'))).toBe(false);
  expect(rates.take(caller('second'))).toBe(true);
});
