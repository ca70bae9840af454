import { expect, it } from 'vitest';
import { onTheWire, refusal } from '../../src/broker/messages.ts';

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

it('an error that a retry cannot cure has no Retry-After', () => {
  expect(onTheWire(refusal('unauthorized_client', 'x')).headers).not.toHaveProperty('Retry-After');
});

it('a caller that another replica may serve is asked to use another connection', () => {
  const headers = (...[code, description]: Parameters<typeof refusal>) =>
    onTheWire(refusal(code, description)).headers;
  expect(headers('temporarily_unavailable', 'x')).toMatchObject({ Connection: 'close' });
  expect(headers('too_many_requests', 'x')).not.toHaveProperty('Connection');
});
