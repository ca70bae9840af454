import { expect, test } from 'vitest';
import { volume } from '../../../support/volume.ts';
import { newTally, runCase } from './fuzz/differential.ts';

/** A second's worth; `npm run fuzz -- --protocol hpack` goes on for as long as it is told to, with other libraries. */
const SEQUENCES = volume(8, 24);
const SEED = 20_261_128;

test('the HPACK decoder reads each block of a long sequence as nghttp2, or a writer of all forms, wrote it', async () => {
  const tally = newTally();
  for (let caseNumber = 0; caseNumber < SEQUENCES; caseNumber++) {
    await runCase(SEED, caseNumber, tally, undefined);
  }
  expect(tally.sequences).toBe(SEQUENCES);
  // The comparison means little unless much is read from both.
  expect(tally.alike.get('nghttp2')).toBeGreaterThan(SEQUENCES * 50);
  expect(tally.alike.get('writer')).toBeGreaterThan(SEQUENCES * 50);
  expect(tally.tooLarge).toBeGreaterThan(SEQUENCES);
});
