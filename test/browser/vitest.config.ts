import { defineConfig } from 'vitest/config';
import { reporters } from '../support/reporters.ts';

/** `npm run test:browser`: the status page in a real Chromium. `SCREENSHOTS=write` renews the pictures of the docs. */
export default defineConfig({
  test: {
    include: ['test/browser/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // One browser for all files.
    fileParallelism: false,
    reporters: reporters(),
  },
});
