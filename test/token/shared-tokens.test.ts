import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { earliestRenewalMs, renewalDelayMs } from '../../src/token/schedule.ts';
import {
  checkShared,
  type SharedToken,
  type SharedTokens,
  type WantedToken,
} from '../../src/token/shared-tokens.ts';
import { failure, loaded, openSource, rejection, token } from './opened-source.ts';
import { RENEWAL } from './policy.ts';

type SharedTokenCheck = ReturnType<typeof checkShared>;

const NOW = { monotonicMs: 1_000_000, wallMs: 2_000_000_000 };
const heldSince = (agoMs: number, accessToken = 'own') => ({
  token: {
    authorization: `Bearer ${accessToken}`,
    requestedAt: { monotonicMs: NOW.monotonicMs - agoMs, wallMs: NOW.wallMs - agoMs },
  },
  isRefused: false,
});
const nothingHeld = { token: undefined, isRefused: false };

/** What others have, in the place of a store: it gives what the test says, by the engine's own judgement. */
function sharing(): SharedTokens & {
  offer: SharedToken | undefined;
  readonly wanted: WantedToken[];
  readonly judged: SharedTokenCheck[];
} {
  const self = {
    offer: undefined as SharedToken | undefined,
    wanted: [] as WantedToken[],
    judged: [] as SharedTokenCheck[],
    async obtain(wanted: WantedToken, ask: Parameters<SharedTokens['obtain']>[1]) {
      self.wanted.push(wanted);
      if (self.offer === undefined) return ask();
      const judgement = wanted.judge(self.offer);
      self.judged.push(judgement);
      const { accessToken, lifetimeMs, ageMs } = self.offer;
      return judgement === 'taken'
        ? ({ result: 'success', accessToken, lifetimeMs, sharedAgeMs: ageMs } as const)
        : ask();
    },
  };
  return self;
}

const openSharing = async (shared: SharedTokens) => openSource(loaded('one'), { by: 'notification' }, shared);

describe('a token granted to another replica', () => {
  const shared = (ageMs: number): SharedToken => ({ accessToken: 'theirs', lifetimeMs: 300_000, ageMs });

  it('is used until its earliest renewal time', () => {
    expect(earliestRenewalMs(300_000, RENEWAL)).toBe(195_000);
    expect(checkShared(shared(194_999), nothingHeld, RENEWAL, NOW)).toBe('taken');
    expect(checkShared(shared(195_000), nothingHeld, RENEWAL, NOW)).toBe('old');
    expect(checkShared(shared(Number.NaN), nothingHeld, RENEWAL, NOW)).toBe('old');
  });

  it('is used only if younger than the held one', () => {
    expect(checkShared(shared(10_000), heldSince(10_001), RENEWAL, NOW)).toBe('taken');
    expect(checkShared(shared(10_000), heldSince(10_000), RENEWAL, NOW)).toBe('old');
    expect(checkShared(shared(10_000), heldSince(5000), RENEWAL, NOW)).toBe('old');
  });

  it('is not used if it is the held one, whatever its stated age', () => {
    const held = heldSince(10_000, 'theirs');
    expect(checkShared(shared(1), held, RENEWAL, NOW)).toBe('old');
    expect(checkShared(shared(1), { ...held, isRefused: true }, RENEWAL, NOW)).toBe('refused');
  });

  it('always has its renewal ahead', () => {
    const lifetime = fc.integer({ min: 1, max: 86_400 }).map((seconds) => seconds * 1000);
    const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(lifetime, draw, draw, (lifetimeMs, at, random) => {
        const ageMs = lifetimeMs * at;
        const offered = { accessToken: 'theirs', lifetimeMs, ageMs };
        if (checkShared(offered, nothingHeld, RENEWAL, NOW) !== 'taken') return;
        expect(ageMs).toBeLessThan(renewalDelayMs(lifetimeMs, RENEWAL, random));
      }),
    );
  });
});

describe('a token source with other replicas', () => {
  it('uses their token for its remaining life and counts no grant', async () => {
    const shared = sharing();
    shared.offer = { accessToken: 'theirs', lifetimeMs: 300_000, ageMs: 100_000 };
    const { source, clock, grants, lines, metrics } = await openSharing(shared);
    expect(grants).toEqual([]);
    expect(source.current()).toBe('Bearer theirs');
    const { wallMs } = clock.now();
    expect(source.snapshot()).toMatchObject({
      requestedAtMs: wallMs - 100_000,
      expiresAtMs: wallMs + 200_000,
      // Three quarters of its whole life.
      renewalAtMs: wallMs + 125_000,
      consecutiveFailures: 0,
    });
    expect(await metrics()).not.toMatch(/token_refresh_total\{.*\} [1-9]/);
    expect(lines.join()).toMatch(/"ageMs":100000,"msg":"token taken that another replica has asked for"/);
    await clock.advance(198_750);
    expect(source.current()).toBeUndefined();
  });

  it('requests a token when its renewal is due and no replica has a younger one', async () => {
    const shared = sharing();
    shared.offer = { accessToken: 'theirs', lifetimeMs: 300_000, ageMs: 0 };
    const { source, clock, grants, last } = await openSharing(shared);
    await clock.advance(225_000);
    expect(shared.judged).toEqual(['taken', 'old']);
    expect(grants).toHaveLength(1);
    await last().answer(token('own'));
    expect(source.current()).toBe('Bearer own');
  });

  it('uses the younger one when its renewal is due', async () => {
    const shared = sharing();
    const { source, clock, last, grants } = await openSharing(shared);
    await last().answer(token('own'));
    shared.offer = { accessToken: 'theirs', lifetimeMs: 300_000, ageMs: 20_000 };
    await clock.advance(225_000);
    expect(source.current()).toBe('Bearer theirs');
    expect(grants).toHaveLength(1);
  });

  it('never uses a token again that an upstream refused', async () => {
    const shared = sharing();
    shared.offer = { accessToken: 'revoked', lifetimeMs: 300_000, ageMs: 0 };
    const { api, clock, grants, last } = await openSharing(shared);
    const authorization = await api.obtain();
    api.accepted(authorization);
    await clock.advance(1000);
    const replaced = api.replace(authorization);
    await clock.advance(0);
    expect(shared.judged).toEqual(['taken', 'refused']);
    expect(grants).toHaveLength(1);
    await last().answer(token('new'));
    expect(await replaced).toBe('Bearer new');
  });

  it('still refuses that token after a failed attempt', async () => {
    const shared = sharing();
    shared.offer = { accessToken: 'revoked', lifetimeMs: 300_000, ageMs: 0 };
    const { api, clock, grants, last } = await openSharing(shared);
    const authorization = await api.obtain();
    api.accepted(authorization);
    const replaced = api.replace(authorization);
    await clock.advance(0);
    await last().answer(failure);
    await replaced;
    await clock.advance(60_000);
    expect(shared.judged.slice(0, 3)).toEqual(['taken', 'refused', 'old']);
    expect(grants.length).toBeGreaterThan(1);
  });

  it('names the credentials it uses, and shares no token of outgoing ones', async () => {
    const shared = sharing();
    const { change, clock, last } = await openSharing(shared);
    await last().answer(token('own'));
    change(loaded('two'));
    await clock.advance(0);
    expect(shared.wanted.map(({ credentials }) => credentials)).toMatchObject([
      { clientSecret: 'one' },
      { clientSecret: 'two' },
    ]);
    // The newest are rejected until the token is about to end.
    while (last().secret === 'two') {
      await last().answer(rejection);
      await clock.advance(30_000);
    }
    const asked = shared.wanted.length;
    await last().answer(token('of the previous'));
    expect(
      shared.wanted
        .slice(0, asked)
        .filter(({ credentials }) => 'clientSecret' in credentials && credentials.clientSecret === 'one'),
    ).toHaveLength(1);
  });

  it('ends the sharing when it is closed', async () => {
    const shared = sharing();
    const { source } = await openSharing(shared);
    await source.close();
    expect(shared.wanted[0]?.signal.aborted).toBe(true);
  });
});
