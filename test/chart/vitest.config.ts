import { defineConfig } from 'vitest/config';
import { reporters } from '../support/reporters.ts';

/** The chart's tests need the programs of scripts/install-tools.ts, so they run by themselves: `npm run test:chart`. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/chart/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
    reporters: reporters(),
  },
});
