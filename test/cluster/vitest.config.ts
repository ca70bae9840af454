import { defineConfig } from 'vitest/config';
import { reporters } from '../support/reporters.ts';

/** Brings a real node of Kubernetes up and installs the chart on it, which takes root and Go: `npm run test:cluster`. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/cluster/scenarios/*.test.ts'],
    globalSetup: 'test/cluster/global-setup.ts',
    // One cluster: one scenario after another.
    fileParallelism: false,
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // What was tried is read in the log of CI.
    reporters: reporters('verbose'),
  },
});
