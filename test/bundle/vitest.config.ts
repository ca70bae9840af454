import { defineConfig } from 'vitest/config';
import { reporters } from '../support/reporters.ts';

/** Builds the bundle, three times over, and looks into it: `npm run test:bundle`. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/bundle/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 15_000 } },
    reporters: reporters(),
  },
});
