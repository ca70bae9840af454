import { expect, it } from 'vitest';
import { lasting, time } from '../../../../src/sidecar/status/page/html.ts';

it.each([
  [400, '0 s'],
  [119_000, '119 s'],
  [120_000, '2 min'],
  [7_140_000, '119 min'],
  [7_200_000, '2 h'],
  [12_000_000, '3 h 20 min'],
  [172_800_000, '2 days'],
])('%d ms are %s', (ms, text) => {
  const now = '2030-01-01T00:00:00.000Z';
  const before = new Date(Date.parse(now) - ms).toISOString();
  expect(lasting(before, now).text).toContain(`>for ${text}<`);
});

it('an instant is told as seen from now, with the absolute one behind it', () => {
  const now = '2030-01-01T00:10:00.000Z';
  const absolute = (iso: string, text: string) =>
    `<time datetime="${iso}" title="${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC">${text}</time>`;
  expect(time('2030-01-01T00:09:15.000Z', now).text).toBe(absolute('2030-01-01T00:09:15.000Z', '45 s ago'));
  expect(time('2030-01-01T00:22:00.000Z', now).text).toBe(absolute('2030-01-01T00:22:00.000Z', 'in 12 min'));
  expect(time(now, now).text).toBe(absolute(now, 'now'));
  expect(lasting('2030-01-01T00:05:00.000Z', now).text).toContain('>for 5 min<');
});
