import { later } from '../../../src/platform/time/clock.ts';
import { TokenUnavailable } from '../../../src/token/bearer-source.ts';
import type { GivenToken } from '../../../src/token/token-source.ts';
import type { ManualClock } from '../../support/manual-clock.ts';

/** A source that holds what the test says. */
export function heldTokens(clock: ManualClock) {
  const listeners = new Set<() => void>();
  let given: GivenToken | undefined;
  let obtained = 0;
  const source = {
    name: 'kafka',
    held: () =>
      given !== undefined && clock.monotonicMs() < given.sendableUntil.monotonicMs ? given : undefined,
    onToken(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async obtain(): Promise<string> {
      obtained += 1;
      throw new TokenUnavailable('credential kafka: no valid token is held', 6500);
    },
  };
  return {
    source,
    obtained: () => obtained,
    followers: () => listeners.size,
    give(token: string, lifetimeMs: number): void {
      given = { token, sendableUntil: later(clock.now(), lifetimeMs) };
      for (const listener of listeners) listener();
    },
  };
}
