import { expect, it } from 'vitest';
import { head, JSON_TYPE, listeningWebhook } from './listening-webhook.ts';

const MIB = 2 ** 20;

it('a caller that leaves before there was room for its review is not waited for', async () => {
  const { open, lines } = await listeningWebhook({
    '/mutate': () => {
      throw new Error('no review comes whole here');
    },
  });
  const big = head('/mutate', JSON_TYPE, `content-length: ${4 * MIB}`);
  // Half of all there is, which is as much as one address may have.
  for (const socket of [await open(), await open()]) socket.write(big);
  const late = await open();
  late.write(big);
  expect(lines.join('')).not.toContain('went away');
  late.end();
  await expect.poll(() => lines.filter((line) => line.includes('went away')).length).toBe(1);
});
