import { describe, expect, it } from 'vitest';
import { createLoginThrottle, networkOf } from '../../src/issuer/login-throttle.ts';
import { ManualClock } from '../support/manual-clock.ts';

type Attempt = Exclude<ReturnType<LoginThrottle['begin']>, { readonly retryAfterSeconds: number }>;

type LoginThrottle = ReturnType<typeof createLoginThrottle>;

const begin = (limits: LoginThrottle, address: string, clientId: string): Attempt => {
  const attempt = limits.begin(address, clientId);
  if ('retryAfterSeconds' in attempt) throw new Error('refused');
  return attempt;
};

describe('the limits of attempts', () => {
  it('count each attempt of a client at an address, and forgive right ones', () => {
    const limits = createLoginThrottle(new ManualClock());
    const attempts = Array.from({ length: 10 }, () => begin(limits, 'a', 'shop'));
    expect(limits.begin('a', 'shop')).toEqual({ retryAfterSeconds: 1 });
    attempts[0]?.forgiven();
    begin(limits, 'a', 'shop');
    expect(limits.begin('a', 'shop')).toEqual({ retryAfterSeconds: 1 });
  });

  it('allow one more a second', async () => {
    const clock = new ManualClock();
    const limits = createLoginThrottle(clock);
    for (let index = 0; index < 10; index++) begin(limits, 'a', 'shop');
    await clock.advance(999);
    expect(limits.begin('a', 'shop')).toEqual({ retryAfterSeconds: 1 });
    await clock.advance(1);
    begin(limits, 'a', 'shop');
    expect(limits.begin('a', 'shop')).toEqual({ retryAfterSeconds: 1 });
    await clock.advance(3_600_000);
    for (let index = 0; index < 10; index++) begin(limits, 'a', 'shop');
    expect(limits.begin('a', 'shop')).toEqual({ retryAfterSeconds: 1 });
  });

  it('count an address by what failed there', () => {
    const limits = createLoginThrottle(new ManualClock());
    for (let index = 0; index < 100; index++) begin(limits, 'a', `right ${index}`).forgiven();
    for (let index = 0; index < 100; index++) begin(limits, 'a', `wrong ${index}`).failed();
    expect(limits.begin('a', 'another')).toEqual({ retryAfterSeconds: 1 });
    begin(limits, 'b', 'another');
  });

  it('allow an address ten failures a second, and say how long it has to wait after many at once', async () => {
    const clock = new ManualClock();
    const limits = createLoginThrottle(clock);
    const attempts = Array.from({ length: 115 }, (_, index) => begin(limits, 'a', `wrong ${index}`));
    for (const attempt of attempts) attempt.failed();
    expect(limits.begin('a', 'another')).toEqual({ retryAfterSeconds: 2 });
    await clock.advance(1599);
    expect(limits.begin('a', 'another')).toEqual({ retryAfterSeconds: 1 });
    await clock.advance(1);
    begin(limits, 'a', 'another').failed();
    expect(limits.begin('a', 'another')).toEqual({ retryAfterSeconds: 1 });
  });

  it('count joined attempts at an address, and forgive right ones', async () => {
    const clock = new ManualClock();
    const limits = createLoginThrottle(clock);
    const joined = Array.from({ length: 256 }, () => limits.join('a'));
    expect(limits.join('a')).toEqual({ retryAfterSeconds: 1 });
    for (const attempt of joined) if ('forgiven' in attempt) attempt.forgiven();
    for (let index = 0; index < 256; index++) (limits.join('a') as Attempt).failed();
    expect(limits.join('a')).toEqual({ retryAfterSeconds: 1 });
    expect(limits.join('b')).not.toHaveProperty('retryAfterSeconds');
    await clock.advance(99);
    expect(limits.join('a')).toEqual({ retryAfterSeconds: 1 });
    await clock.advance(1);
    expect(limits.join('a')).not.toHaveProperty('retryAfterSeconds');
    expect(limits.join('a')).toEqual({ retryAfterSeconds: 1 });
  });

  it('are bounded in number: the one used longest ago is forgotten', () => {
    const limits = createLoginThrottle(new ManualClock());
    for (let index = 0; index < 10; index++) begin(limits, 'a', 'shop');
    for (let index = 0; index < 4095; index++) begin(limits, `address ${index}`, 'shop');
    expect(limits.begin('a', 'shop')).toEqual({ retryAfterSeconds: 1 });
    begin(limits, 'one more', 'shop');
    begin(limits, 'a', 'shop');
  });
});

describe('the network of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:db8::9', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', ''],
  ])('%s is %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
