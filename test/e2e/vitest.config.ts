import { defineConfig } from 'vitest/config';
import { reporters } from '../support/reporters.ts';

/** The tests against real identity providers, which `install-providers.ts` installs: `npm run test:e2e`. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/e2e/**/*.test.ts'],
    // Two providers at a time: each is a server with a memory of its own.
    maxWorkers: 2,
    // Tests wait for events; these bounds only end one that would never finish. A Keycloak starts in half a minute.
    testTimeout: 120_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 15_000 } },
    reporters: reporters(),
    // oidc-provider says at every start that it keeps its data in memory.
    onConsoleLog: (text) => !text.includes('oidc-provider WARNING'),
  },
});
