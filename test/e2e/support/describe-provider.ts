import { describe, it } from 'vitest';
import { type InstalledProvider, missing } from '../providers.ts';

/** The tests of a provider that may not be installed: without it a failure in CI, elsewhere skipped with the reason. */
export function describeProvider(provider: InstalledProvider, tests: () => void): void {
  const reason = missing(provider);
  if (reason === undefined) {
    describe(provider.name, tests);
  } else if (process.env['CI'] === 'true') {
    it(provider.name, () => {
      throw new Error(reason);
    });
  } else {
    // Reporters that print dots keep the reason to themselves.
    process.stderr.write(`skipped: ${reason}\n`);
    it(provider.name, ({ skip }) => skip(reason));
  }
}
