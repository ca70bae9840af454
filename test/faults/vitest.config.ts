import { defineConfig } from 'vitest/config';
import { reporters } from '../support/reporters.ts';

/** `npm run test:faults`: every failure a sidecar is prepared for, and a table of what it did. */
export default defineConfig({
  test: {
    include: ['test/faults/**/*.test.ts'],
    // They look at how fast a process answers, and at its memory.
    fileParallelism: false,
    // Rows wait for events or move a virtual clock; this bound only ends one that would never finish.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
    reporters: reporters(),
  },
});
