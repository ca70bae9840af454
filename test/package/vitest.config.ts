import { defineConfig } from 'vitest/config';
import { reporters } from '../support/reporters.ts';

/** Packs the npm package, installs it as users do, and runs it on their Nodes: `npm run test:package`. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/package/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: reporters(),
  },
});
