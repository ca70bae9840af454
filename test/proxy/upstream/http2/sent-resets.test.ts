import { expect, it } from 'vitest';
import { MAX_STREAMS } from '../../../../src/proxy/upstream/http2/limits.ts';
import { MAX_RESETS, SentResets } from '../../../../src/proxy/upstream/http2/sent-resets.ts';

/** Of Netty, in 30 s. */
const ALLOWED = 200;

it('a connection is retired so early that its server allows the resets around the end of a window, and of all that it still carries', () => {
  expect(2 * MAX_RESETS + MAX_STREAMS).toBeLessThanOrEqual(ALLOWED);
});

it('resets of half a minute count, and older ones do not', () => {
  const resets = new SentResets();
  for (let count = 1; count < MAX_RESETS; count++) expect(resets.sent(1000)).toBe(false);
  expect(resets.sent(31_000)).toBe(false);
  for (let count = 2; count < MAX_RESETS; count++) expect(resets.sent(60_999)).toBe(false);
  expect(resets.sent(60_999)).toBe(true);
});
