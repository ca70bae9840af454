import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { reporters } from './test/support/reporters.ts';

const WIRE = 'test/wire/**/*.test.ts';
/** Programs as a whole, with signals and descriptors, and what looks at all that its own process holds. */
const BY_THEMSELVES = ['test/integration/*.test.ts', 'test/**/*-let-go.test.ts'];

/** Files that leave nothing behind share workers: starting one for each and loading everything anew took half of the time. */
const SHARED = { isolate: false } as const;

export default defineConfig({
  test: {
    // Suites with commands of their own.
    exclude: [
      'test/browser/**',
      'test/bundle/**',
      'test/chart/**',
      'test/docs/**',
      'test/e2e/**',
      'test/faults/**',
      'test/image/**',
      'test/package/**',
      'test/cluster/**',
    ],
    // Tests wait for events; this bound only ends one that would never finish.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
    reporters: reporters(),
    // What was transformed once is not transformed again by the next project, nor by the next run.
    fsModuleCache: true,
    fsModuleCachePath: join(import.meta.dirname, '.cache/transformed'),
    // Programs that tests start find their code compiled by the one before.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, '.cache/compiled') },
    // Much of the time is spent waiting for sockets and child processes: two workers more than there are processors.
    maxWorkers: availableParallelism() + 2,
    projects: [
      // A worker for each file.
      { extends: true, test: { name: 'programs', include: BY_THEMSELVES } },
      {
        extends: true,
        test: { name: 'rooms', include: ['test/**/*.test.ts'], exclude: [...BY_THEMSELVES, WIRE], ...SHARED },
      },
      // Tests of the data path run twice: what is right over TCP has been wrong over TLS more than once.
      {
        extends: true,
        test: { name: 'wire-plain', include: [WIRE], provide: { upstreams: 'plain' }, ...SHARED },
      },
      {
        extends: true,
        test: {
          name: 'wire-tls',
          include: [WIRE],
          provide: { upstreams: 'tls' },
          ...SHARED,
        },
      },
    ],
  },
});
