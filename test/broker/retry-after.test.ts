import { expect, it } from 'vitest';
import { onTheWire, refusal } from '../../src/broker/broker-answer.ts';

it.each([
  [0, '1'],
  [1, '1'],
  [1001, '2'],
  [10_000, '10'],
  [600_000, '10'],
])('whoever may come again after %i ms is told %s s', (ms, seconds) => {
  expect(onTheWire(refusal('temporarily_unavailable', 'x', ms)).headers).toMatchObject({
    'Retry-After': seconds,
  });
});

it('whom coming again does not help is told nothing of it', () => {
  expect(onTheWire(refusal('unauthorized_client', 'x')).headers).not.toHaveProperty('Retry-After');
});

it('whoever may get from another replica what this one has not is to come by another connection', () => {
  const none = refusal('temporarily_unavailable', 'x', 0);
  expect(onTheWire({ ...none, perhapsElsewhere: true }).headers).toMatchObject({ Connection: 'close' });
  expect(onTheWire(none).headers).not.toHaveProperty('Connection');
});
