import { defineConfig } from 'vitest/config';
import { reporters } from './test/support/reporters.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Suites with commands of their own.
    exclude: ['test/chart/**', 'test/e2e/**', 'test/faults/**', 'test/image/**'],
    // Tests wait for events; this bound only ends one that would never finish.
    testTimeout: 20_000,
    hookTimeout: 20_000,
    reporters: reporters(),
  },
});
