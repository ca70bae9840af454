import { expect, it } from 'vitest';
import { TokenRequestHistory } from '../../src/token/grant-report.ts';

type FinishedGrant = Parameters<TokenRequestHistory['add']>[0];

const MINUTE_MS = 60_000;
const START_MS = Date.parse('2030-01-01T00:00:00Z');

const grant = (atMs: number, result: FinishedGrant['result'] = 'success'): FinishedGrant => ({
  atMs: START_MS + atMs,
  reason: 'scheduled',
  result,
  durationMs: 1,
});

it('the grant history has the minutes of the last two hours with grants, oldest first', () => {
  const history = new TokenRequestHistory();
  history.add(grant(0));
  history.add(grant(1000, 'unavailable'));
  history.add(grant(5 * MINUTE_MS));
  expect(history.read(START_MS + 6 * MINUTE_MS).minutes).toEqual([
    { atMs: START_MS, succeeded: 1, failed: 1 },
    { atMs: START_MS + 5 * MINUTE_MS, succeeded: 1, failed: 0 },
  ]);
  expect(history.read(START_MS + 119 * MINUTE_MS).minutes).toHaveLength(2);
  expect(history.read(START_MS + 120 * MINUTE_MS).minutes).toHaveLength(1);
  expect(history.read(START_MS + 300 * MINUTE_MS).minutes).toEqual([]);
});

it('the grant history is limited to two hours and twenty grants', () => {
  const history = new TokenRequestHistory();
  const count = 70_000;
  for (let index = 0; index < count; index++) history.add(grant(index * 1000, 'rejected'));
  const minutes = history.read(START_MS + count * 1000).minutes;
  expect(minutes.length).toBeLessThanOrEqual(120);
  expect(minutes.every(({ failed }) => failed === 60 || failed === 40)).toBe(true);
  expect(history.read(START_MS).latest).toHaveLength(20);
  // More in a minute than the tally holds.
  for (let index = 0; index < count; index++) history.add(grant(count * 1000));
  expect(history.read(START_MS + count * 1000).minutes.at(-1)).toMatchObject({ succeeded: 65_535 });
});

it('the failing time of grants begins with the first failure after a success', () => {
  const history = new TokenRequestHistory();
  expect(history.failingSinceMs).toBeUndefined();
  history.add(grant(0));
  history.add(grant(1000, 'unavailable'));
  history.add(grant(2000, 'rejected'));
  expect(history.failingSinceMs).toBe(START_MS + 1000);
  history.add(grant(3000));
  expect(history.failingSinceMs).toBeUndefined();
});

it('after the clock was set back no entry is later than now', () => {
  const history = new TokenRequestHistory();
  history.add(grant(90 * MINUTE_MS));
  expect(history.read(START_MS).minutes).toEqual([]);
});
