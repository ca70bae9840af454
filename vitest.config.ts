import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/e2e/**'],
    // Tests wait for events; this bound only ends one that would never finish.
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
