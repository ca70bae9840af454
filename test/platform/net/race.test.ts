import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { race } from '../../../src/platform/net/connect.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const ATTEMPT_DELAY_MS = 250;

const ADDRESSES = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => ({ address, family: 4 }));

/** A race between sockets that connect, or fail, when they are told to. */
function racing() {
  const clock = new ManualClock();
  const attempts: Socket[] = [];
  const told: unknown[] = [];
  const end = race({
    addresses: ADDRESSES,
    delayMs: ATTEMPT_DELAY_MS,
    clock,
    connect() {
      const attempt = new Socket();
      attempts.push(attempt);
      return attempt;
    },
    onWon: (winner, { address }) => told.push([attempts.indexOf(winner), address]),
    onLost: (error) => told.push(error),
  });
  const fail = (index: number, code: string) =>
    attempts[index]?.emit('error', Object.assign(new Error(`connect ${code} to ${index}`), { code }));
  const ended = () => attempts.map(({ destroyed }) => destroyed);
  return { clock, attempts, told, end, fail, ended };
}

describe('a race between the addresses of a name', () => {
  it('begins with the first, and goes on to the next after the delay, with the first beside it', async () => {
    const { clock, attempts, told, ended } = racing();
    expect(attempts).toHaveLength(1);
    await clock.advance(ATTEMPT_DELAY_MS - 1);
    expect(attempts).toHaveLength(1);
    await clock.advance(1);
    expect(attempts).toHaveLength(2);
    await clock.advance(10 * ATTEMPT_DELAY_MS);
    expect(ended()).toEqual([false, false, false]);
    expect(told).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  it.each([0, 1, 2])('is won by whoever stands first (%i): the others end', async (winner) => {
    const { clock, attempts, told, ended } = racing();
    await clock.advance(2 * ATTEMPT_DELAY_MS);
    attempts[winner]?.emit('connect');
    expect(told).toEqual([[winner, ADDRESSES[winner]?.address]]);
    expect(ended()).toEqual([0, 1, 2].map((index) => index !== winner));
  });

  it('begins no other attempt once it is won', async () => {
    const { clock, attempts } = racing();
    attempts[0]?.emit('connect');
    await clock.advance(10 * ATTEMPT_DELAY_MS);
    expect(attempts).toHaveLength(1);
  });

  it('goes on at once if an address fails, and gives the next its whole time', async () => {
    const { clock, attempts, fail } = racing();
    await clock.advance(ATTEMPT_DELAY_MS - 1);
    fail(0, 'ENETUNREACH');
    expect(attempts).toHaveLength(2);
    await clock.advance(ATTEMPT_DELAY_MS - 1);
    expect(attempts).toHaveLength(2);
    await clock.advance(1);
    expect(attempts).toHaveLength(3);
  });

  it('is not lost before all have failed, and tells every reason, with the code of the first', async () => {
    const { clock, told, fail } = racing();
    await clock.advance(ATTEMPT_DELAY_MS);
    fail(1, 'ENETUNREACH');
    fail(2, 'ECONNREFUSED');
    expect(told).toEqual([]);
    fail(0, 'EHOSTUNREACH');
    const [lost] = told as [AggregateError & { code: string }];
    expect(lost.code).toBe('ENETUNREACH');
    expect(lost.message).toBe(
      'connect ENETUNREACH to 1; connect ECONNREFUSED to 2; connect EHOSTUNREACH to 0',
    );
    expect(lost.errors).toHaveLength(3);
  });

  it('leaves nothing behind that was given up', async () => {
    const { clock, told, attempts, end, fail, ended } = racing();
    await clock.advance(ATTEMPT_DELAY_MS);
    end();
    fail(0, 'ECONNREFUSED');
    await clock.advance(10 * ATTEMPT_DELAY_MS);
    expect(attempts).toHaveLength(2);
    expect(ended()).toEqual([true, true]);
    expect(told).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });
});
