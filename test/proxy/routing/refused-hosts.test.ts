import { expect, it } from 'vitest';
import { RefusedHosts } from '../../../src/proxy/routing/refused-hosts.ts';
import { ManualClock } from '../../support/manual-clock.ts';

it('refused hosts are remembered with count and time, the latest first', async () => {
  const clock = new ManualClock();
  const refused = new RefusedHosts(clock);
  const beganMs = clock.now().wallMs;
  refused.add('a.example.com');
  refused.add('b.example.com:8443');
  await clock.advance(1000);
  refused.add('a.example.com');
  expect(refused.latest()).toEqual([
    { host: 'a.example.com', times: 2, lastAtMs: beganMs + 1000 },
    { host: 'b.example.com:8443', times: 1, lastAtMs: beganMs },
  ]);
});

it('refused hosts are limited to sixteen of limited length', () => {
  const refused = new RefusedHosts(new ManualClock());
  for (let host = 0; host < 10_000; host++) refused.add(`${host}-${'x'.repeat(1000)}`);
  expect(refused.latest()).toHaveLength(16);
  expect(refused.latest()[0]?.host.startsWith('9999-')).toBe(true);
  expect(refused.latest().every(({ host }) => host.length <= 259)).toBe(true);
});
