import { defineConfig } from 'vitest/config';
import { NearestFirst } from './nearest-first.ts';

/** Directories, set by the driver: those that can notice a mutant of the room. */
const suites = (process.env['MUTATION_SUITES'] ?? 'test').split(',');

export default defineConfig({
  test: {
    include: suites.map((suite) => `${suite}/**/*.test.ts`),
    // The fuzzer's share of the suite: instrumented it takes longer than all tests beside it.
    exclude: ['test/proxy/http1/differential.test.ts'],
    // A test that hangs ends its mutant; under load the slowest takes a third of this.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    expect: { poll: { timeout: 15_000 } },
    sequence: { sequencer: NearestFirst },
  },
});
