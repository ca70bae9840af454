import { defineConfig } from 'vitest/config';
import { reporters } from '../support/reporters.ts';

/** What the pages show, run or checked. It needs the programs of scripts/install-tools.ts: `npm run test:docs`. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/docs/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: reporters(),
  },
});
