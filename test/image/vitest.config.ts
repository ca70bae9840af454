import { defineConfig } from 'vitest/config';
import { reporters } from '../support/reporters.ts';

/** Builds the image and runs it in pods, which takes root and container tools: `npm run test:image`. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/image/**/*.test.ts'],
    globalSetup: 'test/image/global-setup.ts',
    // Pods are heavy: one at a time.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 15_000 } },
    reporters: reporters(),
  },
});
