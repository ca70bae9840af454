/** Who asks and who waits, on a clock that stands still; what lies in a real store has tests of its own (test/e2e/token-cache). */

import { randomBytes } from 'node:crypto';
import { Registry } from '@prometheus-io/client';
import { describe, expect, it } from 'vitest';
import { createCacheMetrics } from '../../../src/broker/cache/metrics.ts';
import { deriveKey, unseal } from '../../../src/broker/cache/sealed-token.ts';
import { type CacheKeys, createTokenCache } from '../../../src/broker/cache/token-cache.ts';
import type { Answer, Found, TokenStore } from '../../../src/broker/cache/token-store.ts';
import type { TokenResponse } from '../../../src/token/provider/token-response.ts';
import type { checkShared, WantedToken } from '../../../src/token/shared-tokens.ts';
import { credentialConfig } from '../../support/credential-config.ts';
import { ManualClock, settle } from '../../support/manual-clock.ts';

type SharedTokenCheck = ReturnType<typeof checkShared>;

const MAX_WAIT_MS = 2000;

interface Kept {
  value: string;
  endsAtMs: number;
}

/** The store of all replicas of a test, by the clock of the test. */
function storeIn(clock: ManualClock) {
  const kept = new Map<string, Kept>();
  const calls: string[] = [];
  let isAway = false;
  let removals: Promise<void> = Promise.resolve();
  /** Called once, before the next answer to a claim. */
  let beforeClaim: (() => void) | undefined;

  function answer<T>(call: string, value: () => T): Promise<Answer<T>> {
    calls.push(call);
    return Promise.resolve(isAway ? { state: 'away' } : { state: 'answered', value: value() });
  }
  function alive(name: string): Kept | undefined {
    const one = kept.get(name);
    return one !== undefined && one.endsAtMs > clock.monotonicMs() ? one : undefined;
  }
  function put(name: string, value: string, lifeMs: number): void {
    kept.set(name, { value, endsAtMs: clock.monotonicMs() + lifeMs });
  }
  const store: TokenStore = {
    isConnected: () => !isAway,
    read: (names) =>
      answer('read', () =>
        names.map((name): Found => {
          const one = alive(name);
          if (one === undefined) return { kind: 'nothing' };
          return { kind: 'value', value: one.value, leftMs: one.endsAtMs - clock.monotonicMs() };
        }),
      ),
    write: (name, value, lifeMs) =>
      answer('write', () => {
        put(name, value, lifeMs);
        return 'written' as const;
      }),
    claim(name, lifeMs) {
      beforeClaim?.();
      beforeClaim = undefined;
      return answer('claim', () => {
        if (alive(name) !== undefined) return 'taken' as const;
        put(name, '1', lifeMs);
        return 'claimed' as const;
      });
    },
    async remove(name) {
      await removals;
      return await answer('remove', () => {
        kept.delete(name);
        return 'removed' as const;
      });
    },
    tried: Promise.resolve(),
    reconnect: () => undefined,
    close: async () => undefined,
  };
  return {
    store,
    kept,
    calls,
    put,
    alive,
    goAway(away: boolean) {
      isAway = away;
    },
    /** Answers no removal before the function that it returns is called. */
    stallRemovals() {
      const stall = Promise.withResolvers<void>();
      removals = stall.promise;
      return stall.resolve;
    },
    whenClaimed(callback: () => void) {
      beforeClaim = callback;
    },
  };
}

const config = credentialConfig({ tokenUrl: 'https://login.example.com/token' });
const granted = (accessToken: string, lifetimeMs = 300_000): TokenResponse => ({
  result: 'success',
  accessToken,
  lifetimeMs,
});
const refusal: TokenResponse = { result: 'rejected', detail: 'status 401' };

function start(keys: CacheKeys = { current: deriveKey(randomBytes(32)) }) {
  const clock = new ManualClock();
  const shared = storeIn(clock);

  /** A replica that wants a token, and whose provider answers when it is told to. */
  function replica(
    { judge = () => 'taken', secret = 's3cret' }: { judge?: () => SharedTokenCheck; secret?: string } = {},
    own = keys,
  ) {
    const cache = createTokenCache({
      store: shared.store,
      keys: () => own,
      clock,
      random: () => 0.5,
      metrics: createCacheMetrics(new Registry()),
    });
    const abort = new AbortController();
    const asked: ((outcome: TokenResponse) => void)[] = [];
    const judged: number[] = [];
    const wanted: WantedToken = {
      credentials: { method: 'client_secret_post', clientId: 'shop', clientSecret: secret },
      signal: abort.signal,
      judge(token) {
        judged.push(token.ageMs);
        return judge();
      },
    };
    let outcome: TokenResponse | undefined;
    const done = cache
      .of(config)
      .obtain(wanted, () => new Promise((resolve) => asked.push(resolve)))
      .then((result) => {
        outcome = result;
        return result;
      });
    return {
      done,
      abort,
      judged,
      asks: () => asked.length,
      outcome: () => outcome,
      answer: async (result: TokenResponse) => {
        asked.at(-1)?.(result);
        await settle();
      },
    };
  }
  return { clock, ...shared, keys, replica };
}

const names = (kept: Map<string, Kept>) => [...kept.keys()].sort();

describe('of two replicas', () => {
  it('the first requests a token, and the other takes it with its age', async () => {
    const { clock, replica, kept } = start();
    const first = replica();
    await settle();
    await first.answer(granted('one'));
    expect(await first.done).toEqual(granted('one'));
    expect(names(kept)).toHaveLength(1);
    await clock.advance(100_000);
    const other = replica();
    expect(await other.done).toEqual({ ...granted('one'), sharedAgeMs: 100_000 });
    expect(other.asks()).toBe(0);
  });

  it('the other waits for the grant of the first', async () => {
    const { clock, replica } = start();
    const first = replica();
    await settle();
    const other = replica();
    await clock.advance(1000);
    expect([first.asks(), other.asks(), other.outcome()]).toEqual([1, 0, undefined]);
    await first.answer(granted('one'));
    await clock.advance(150);
    expect(other.outcome()).toMatchObject({ accessToken: 'one', sharedAgeMs: 1100 });
  });

  it('the other waits up to its bound, and then requests its own', async () => {
    const { clock, replica } = start();
    const first = replica();
    await settle();
    const other = replica();
    await clock.advance(MAX_WAIT_MS - 1);
    expect(other.asks()).toBe(0);
    await clock.advance(200);
    expect(other.asks()).toBe(1);
    await other.answer(granted('two'));
    expect(await other.done).toEqual(granted('two'));
    await first.answer(refusal);
    expect(await first.done).toEqual(refusal);
  });

  it('the other requests its own as soon as the first has failed', async () => {
    const { clock, replica } = start();
    const first = replica();
    await settle();
    const other = replica();
    await settle();
    await first.answer(refusal);
    await clock.advance(150);
    expect(other.asks()).toBe(1);
  });

  it('the other takes what was stored between its look and its claim', async () => {
    const { replica, kept, put, whenClaimed } = start();
    const probe = replica();
    await settle();
    await probe.answer(granted('one'));
    const [name = ''] = names(kept);
    const value = kept.get(name)?.value as string;
    kept.clear();
    const other = replica();
    whenClaimed(() => put(name, value, 300_000));
    expect(await other.done).toMatchObject({ accessToken: 'one' });
    expect(other.asks()).toBe(0);
    // Its claim is given back.
    expect(names(kept)).toEqual([name]);
  });

  it('a dead one delays the other by that bound at most', async () => {
    const { clock, replica } = start();
    replica();
    await settle();
    await clock.advance(3000);
    const other = replica();
    await settle();
    expect(other.asks()).toBe(1);
  });
});

describe('a slow removal', () => {
  it('of a claim does not delay a token, whose stated age would be wrong then', async () => {
    const { clock, replica, kept, put, whenClaimed, stallRemovals } = start();
    const probe = replica();
    await settle();
    await probe.answer(granted('one'));
    const [name = ''] = names(kept);
    const value = kept.get(name)?.value as string;
    kept.clear();
    const answerRemovals = stallRemovals();
    const other = replica();
    whenClaimed(() => put(name, value, 300_000));
    await settle();
    expect(other.outcome()).toMatchObject({ accessToken: 'one', sharedAgeMs: 0 });
    await clock.advance(60_000);
    answerRemovals();
    await settle();
    expect(names(kept)).toEqual([name]);
  });

  it('of a refused token does not delay another', async () => {
    const { replica, stallRemovals } = start();
    const first = replica();
    await settle();
    await first.answer(granted('one'));
    stallRemovals();
    const other = replica({ judge: () => 'refused' });
    await settle();
    expect(other.asks()).toBe(1);
  });
});

describe('a claim', () => {
  it('that may belong to another replica by now is left to expire', async () => {
    const { clock, replica, kept } = start();
    const first = replica();
    await settle();
    await clock.advance(2500);
    await first.answer(granted('one'));
    expect(names(kept).some((name) => name.endsWith(':claim'))).toBe(true);
  });

  it('is no longer waited for when all requests for the token are gone', async () => {
    const { replica } = start();
    replica();
    await settle();
    const other = replica();
    await settle();
    other.abort.abort();
    await settle();
    // What it asks is given up by the same signal.
    expect(other.asks()).toBe(1);
  });
});

describe('while the store is unavailable', () => {
  it('each replica asks the provider at once', async () => {
    const { replica, goAway, calls } = start();
    goAway(true);
    const one = replica();
    await settle();
    expect(one.asks()).toBe(1);
    expect(calls).toEqual(['read']);
    await one.answer(granted('one'));
    expect(await one.done).toEqual(granted('one'));
  });

  it('gone between look and claim, or while it is waited for, each asks at once', async () => {
    const { clock, replica, goAway, whenClaimed } = start();
    whenClaimed(() => goAway(true));
    const one = replica();
    await settle();
    expect(one.asks()).toBe(1);
    goAway(false);
    replica();
    await settle();
    const waiting = replica();
    await settle();
    goAway(true);
    await clock.advance(150);
    expect(waiting.asks()).toBe(1);
  });

  it('the token is stored if the store is back by then', async () => {
    const { replica, goAway, kept } = start();
    goAway(true);
    const one = replica();
    await settle();
    goAway(false);
    await one.answer(granted('one'));
    expect(names(kept)).toHaveLength(1);
  });
});

describe('a stored token', () => {
  async function storeOne() {
    const world = start();
    const first = world.replica();
    await settle();
    await first.answer(granted('one'));
    const [name = ''] = names(world.kept);
    return { ...world, name };
  }

  it('that must not be used is replaced', async () => {
    const { replica, keys, kept, name } = await storeOne();
    const other = replica({ judge: () => 'old' });
    await settle();
    await other.answer(granted('two'));
    expect(await other.done).toEqual(granted('two'));
    const value = kept.get(name)?.value as string;
    expect(unseal(keys.current, name, value)?.accessToken).toBe('two');
    expect(await replica().done).toMatchObject({ accessToken: 'two' });
  });

  it('that an upstream has refused is removed before another is asked for', async () => {
    const { replica, alive, name } = await storeOne();
    const other = replica({ judge: () => 'refused' });
    await settle();
    expect(other.asks()).toBe(1);
    expect(alive(name)).toBeUndefined();
    await other.answer({ result: 'unavailable', detail: 'away' });
    // Others are not given it, either.
    const third = replica();
    await settle();
    expect(third.asks()).toBe(1);
  });

  it('has the age by the later of both clocks', async () => {
    const { clock, replica } = await storeOne();
    await clock.advance(10_000);
    clock.stepWall(60_000);
    const ahead = replica();
    await ahead.done;
    expect(ahead.judged).toEqual([70_000]);
    clock.stepWall(-120_000);
    const behind = replica();
    await behind.done;
    expect(behind.judged).toEqual([10_000]);
  });

  it('lives no longer than its own lifetime, whatever the store says', async () => {
    const { clock, replica, kept, put, name } = await storeOne();
    clock.stepWall(-1000);
    put(name, kept.get(name)?.value as string, 10_000_000);
    const one = replica();
    await one.done;
    expect(one.judged).toEqual([0]);
  });

  it('that has expired by the local clock is not looked at', async () => {
    const { clock, replica } = await storeOne();
    clock.stepWall(300_000);
    const one = replica();
    await settle();
    expect([one.asks(), one.judged]).toEqual([1, []]);
  });

  it('of another client secret is not found', async () => {
    const { replica } = await storeOne();
    const rotated = replica({ secret: 'another' });
    await settle();
    expect([rotated.asks(), rotated.judged]).toEqual([1, []]);
  });

  it('of the previous key is read, and written by the current one', async () => {
    const { replica, keys, kept, name } = await storeOne();
    const current = deriveKey(randomBytes(32));
    const rotated = { current, previous: keys.current };
    expect(await replica({}, rotated).done).toMatchObject({ accessToken: 'one' });
    const renewing = replica({ judge: () => 'old' }, rotated);
    await settle();
    await renewing.answer(granted('two'));
    expect(names(kept)).toHaveLength(2);
    expect(await replica({}, { current }).done).toMatchObject({ accessToken: 'two' });
    expect(kept.has(name)).toBe(true);
  });
});

it('a token without an end, or that expired meanwhile, is not stored', async () => {
  const { clock, replica, calls } = start();
  const endless = replica();
  await settle();
  await endless.answer(granted('one', Number.POSITIVE_INFINITY));
  const slow = replica();
  await settle();
  await clock.advance(2000);
  await slow.answer(granted('two', 1000));
  expect(calls).not.toContain('write');
});

it('credentials without an identity share no token, and request their own', async () => {
  const { replica, calls } = start();
  const one = replica({ secret: new (class {})() as string });
  await settle();
  expect(one.asks()).toBe(1);
  await one.answer(granted('token-1'));
  expect(one.outcome()).toEqual(granted('token-1'));
  expect(calls).toEqual([]);
});
