import type { RenewalPolicy } from '../../src/config/renewal.ts';

/** The defaults, but the first grant at once. */
export const RENEWAL: RenewalPolicy = {
  at: 0.75,
  jitter: 0.1,
  startupJitterMs: 0,
  minIntervalMs: 1000,
  recoveryMs: 30_000,
  defaultLifetimeMs: 300_000,
};
