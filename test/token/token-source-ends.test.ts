import { describe, expect, it } from 'vitest';
import { TokenUnavailable } from '../../src/token/bearer-source.ts';
import type { TokenResponse } from '../../src/token/provider/token-response.ts';
import { garbageCollector } from '../support/collect-garbage.ts';
import { settle } from '../support/manual-clock.ts';
import { loaded, openSource, rejection, token } from './opened-source.ts';

describe('a request that waits for a token', () => {
  it('fails with all others as soon as no grant is due within a second', async () => {
    const { source, clock, last } = await openSource();
    const callers = [source.obtain(), source.obtain()].map((caller) => caller.catch((error) => error));
    await last().answer(rejection);
    // That of the next grant: nobody waits for time to pass.
    expect(clock.pendingTimers).toBe(1);
    for (const error of await Promise.all(callers)) expect(error).toMatchObject({ retryAfterSeconds: 15 });
  });

  it('fails at once if nothing will replace the token', async () => {
    const { source, api, clock, last } = await openSource();
    await last().answer(token('a'));
    await clock.advance(5000);
    const caller = api.replace('Bearer a');
    await settle();
    await last().answer(rejection);
    expect(await caller).toBeUndefined();
    expect(source.current()).toBe('Bearer a');
    expect(clock.pendingTimers).toBe(1);
  });

  it.each<[string, TokenResponse]>([
    ['brought a token', token('a')],
    ['was refused', rejection],
  ])('that %s is released', async (_, outcome) => {
    const { source, clock, last } = await openSource();
    const collect = garbageCollector();
    const heldBytes = () => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = heldBytes();
    for (let caller = 0; caller < 20_000; caller++) source.obtain().catch(() => undefined);
    expect(heldBytes() - before).toBeGreaterThan(8e6);
    await last().answer(outcome);
    expect(clock.pendingTimers).toBe(1);
    expect(heldBytes() - before).toBeLessThan(2e6);
  });
});

describe('a hanging check of the credentials', () => {
  it('delays a grant by a second', async () => {
    const { clock, grants, hangLooks, last } = await openSource();
    await last().answer(token('a'));
    hangLooks();
    await clock.advance(225_000);
    expect(grants).toHaveLength(1);
    await clock.advance(1000);
    expect(grants).toHaveLength(2);
  });

  it('does not end a grant that has been superseded', async () => {
    const { clock, grants, change, hangLooks, last } = await openSource();
    await last().answer(token('a'));
    const endLook = hangLooks();
    await clock.advance(225_000);
    change(loaded('two'));
    endLook();
    await settle();
    expect(grants.map(({ secret }) => secret)).toEqual(['one', 'two']);
  });

  it('requests nothing after the source was closed, and leaves no timer', async () => {
    const { source, clock, grants, hangLooks, last } = await openSource();
    await last().answer(token('a'));
    const endLook = hangLooks();
    await clock.advance(225_000);
    await source.close();
    endLook();
    await settle();
    expect(grants).toHaveLength(1);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a request whose client left', () => {
  it('waits for no grant, while others do', async () => {
    const { source, clock, last } = await openSource();
    const timers = clock.pendingTimers;
    const leaving = new AbortController();
    const left = source.obtain({ gone: leaving.signal });
    const stays = source.obtain();
    await settle();
    expect(clock.pendingTimers).toBe(timers + 2);
    leaving.abort();
    await expect(left).rejects.toBeInstanceOf(TokenUnavailable);
    await expect(source.obtain({ gone: leaving.signal })).rejects.toBeInstanceOf(TokenUnavailable);
    expect(clock.pendingTimers).toBe(timers + 1);
    await last().answer(token('a'));
    expect(await stays).toBe('Bearer a');
  });

  it('gets no other token after a refusal', async () => {
    const { api, clock, last } = await openSource();
    await last().answer(token('a'));
    await clock.advance(5000);
    const leaving = new AbortController();
    const replaced = api.replace('Bearer a', { gone: leaving.signal });
    leaving.abort();
    expect(await replaced).toBeUndefined();
  });
});

describe('closing a token source', () => {
  it('ends all requests: no refused token, new credentials or time cause a grant', async () => {
    const { source, api, clock, grants, change, rewrite, last, lines } = await openSource();
    await last().answer(token('a'));
    await clock.advance(5000);
    await source.close();
    const said = lines.length;
    expect(await api.replace('Bearer a')).toBeUndefined();
    rewrite();
    change(loaded('two'));
    await clock.advance(600_000);
    expect(grants).toHaveLength(1);
    expect(source.snapshot().grantInFlight).toBe(false);
    expect(lines).toHaveLength(said);
  });

  it('works before there were credentials', async () => {
    const { source, clock, grants, change } = await openSource({
      state: 'missing',
      detail: '/secret/client_id does not exist',
    });
    await source.close();
    change(loaded('one'));
    await settle();
    expect(grants).toHaveLength(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('during a grant leaves no request waiting', async () => {
    const { source, api, clock, grants, last } = await openSource();
    await last().answer(token('a'));
    await clock.advance(225_000);
    await source.close();
    const replaced = api.replace('Bearer a');
    await settle();
    expect(clock.pendingTimers).toBe(0);
    expect(await replaced).toBeUndefined();
    clock.stepWall(600_000);
    const obtained = source.obtain().catch((error: unknown) => error);
    await settle();
    expect(clock.pendingTimers).toBe(0);
    expect(await obtained).toBeInstanceOf(TokenUnavailable);
    await grants[1]?.answer(token('b'));
    expect(source.grants().latest).toHaveLength(1);
  });

  it('aborts the grant, fails waiting requests and leaves no timer', async () => {
    const { source, clock, grants } = await openSource();
    const caller = source.obtain().catch((error: unknown) => error);
    await source.close();
    expect(await caller).toBeInstanceOf(TokenUnavailable);
    expect(grants[0]?.signal.aborted).toBe(true);
    expect(clock.pendingTimers).toBe(0);
    await expect(source.obtain()).rejects.toBeInstanceOf(TokenUnavailable);
  });
});
