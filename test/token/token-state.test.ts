import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasPassed, type Instant, later } from '../../src/platform/time/clock.ts';
import type { Authorization } from '../../src/token/bearer-source.ts';
import type { GrantedToken, RefusedGrant } from '../../src/token/provider/token-response.ts';
import {
  INITIAL_STATE,
  reduce,
  type TokenEvent,
  type TokenRequestInFlight,
  type TokenState,
  validToken,
} from '../../src/token/token-state.ts';
import { RENEWAL } from './policy.ts';

const START: Instant = { monotonicMs: 0, wallMs: 1_900_000_000_000 };

/** The reducer with a moment and a dice roll to go with it. */
class Engine {
  state: TokenState = INITIAL_STATE;
  now = START;
  random = 0;
  tokens = 0;

  apply(event: TokenEvent): this {
    this.state = reduce(this.state, event, { now: this.now, random: this.random, policy: RENEWAL });
    return this;
  }

  wait(ms: number): this {
    this.now = later(this.now, ms);
    return this.apply({ type: 'looked' });
  }

  load(): this {
    return this.apply({ type: 'credentials_loaded' });
  }

  get grant(): TokenRequestInFlight {
    if (this.state.grant === undefined) throw new Error('no grant is in flight');
    return this.state.grant;
  }

  end(outcome: GrantedToken | RefusedGrant): this {
    return this.apply({ type: 'grant_ended', id: this.grant.id, outcome });
  }

  succeed(lifetimeMs = 300_000): this {
    this.tokens += 1;
    return this.end({ result: 'success', accessToken: `t${this.tokens}`, lifetimeMs });
  }

  fail(result: RefusedGrant['result'] = 'unavailable', retryAfterMs?: number): this {
    return this.end({ result, detail: 'test', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
  }

  refuse(upstream = 'api'): this {
    const authorization = this.state.token?.authorization ?? '';
    return this.apply({ type: 'refused_by_upstream', upstream, authorization });
  }

  accept(upstream = 'api', authorization = this.state.token?.authorization ?? ''): this {
    return this.apply({ type: 'accepted_by_upstream', upstream, authorization });
  }

  get dueInMs(): number | undefined {
    return this.state.due && this.state.due.at.monotonicMs - this.now.monotonicMs;
  }

  get valid(): Authorization | undefined {
    return validToken(this.state, this.now)?.authorization;
  }
}

const started = () => new Engine().load().succeed();

describe('starting', () => {
  it('begins no grant before credentials are there', () => {
    expect(new Engine().wait(60_000).state).toBe(INITIAL_STATE);
  });

  it('begins one when they are, for the reason startup', () => {
    expect(new Engine().load().grant).toMatchObject({ id: 1, reason: 'startup', writing: 'newest' });
  });

  it('hears nothing from upstreams, nor of grants that were not begun', () => {
    const engine = new Engine();
    engine.accept('api', 'Bearer t1').refuse();
    engine.apply({ type: 'grant_ended', id: 1, outcome: { result: 'rejected', detail: 'test' } });
    expect(engine.state).toBe(INITIAL_STATE);
  });
});

describe('a held token', () => {
  it('counts its lifetime from the moment it was requested', () => {
    const engine = new Engine().load();
    engine.now = later(engine.now, 8000);
    engine.succeed(10_000);
    expect(engine.valid).toBe('Bearer t1');
    expect(engine.wait(1000).valid).toBeUndefined();
  });

  it('is not sent in its last second, which the provider may have begun to count before, nor when it may arrive then', () => {
    const engine = started();
    expect(engine.wait(298_749).valid).toBe('Bearer t1');
    expect(engine.wait(1).valid).toBeUndefined();
  });

  it('is renewed at three quarters of its life while it goes on being served', () => {
    const engine = started();
    expect(engine.dueInMs).toBe(225_000);
    engine.wait(225_000);
    expect(engine.grant.reason).toBe('scheduled');
    expect(engine.valid).toBe('Bearer t1');
    expect(engine.succeed().valid).toBe('Bearer t2');
  });

  it('is renewed on a jittered schedule, but anywhere in its life after a grant that others may have made too', () => {
    const engine = new Engine();
    engine.random = 0.5;
    expect(engine.load().succeed().dueInMs).toBe(140_625);
    expect(engine.wait(140_625).succeed().dueInMs).toBe(210_000);
    expect(engine.load().succeed().dueInMs).toBe(140_625);
    expect(engine.wait(5000).refuse().succeed().dueInMs).toBe(140_625);
    expect(engine.wait(140_625).fail().wait(1000).succeed().dueInMs).toBe(140_625);
  });

  it('is expired when either clock says so', () => {
    const stepped = started();
    stepped.now = { ...stepped.now, wallMs: stepped.now.wallMs + 3_600_000 };
    expect(stepped.valid).toBeUndefined();
    expect(stepped.apply({ type: 'looked' }).grant.reason).toBe('scheduled');

    const steppedBack = started();
    steppedBack.now = {
      monotonicMs: steppedBack.now.monotonicMs + 300_000,
      wallMs: steppedBack.now.wallMs - 3_600_000,
    };
    expect(steppedBack.valid).toBeUndefined();
  });
});

describe('a failed grant', () => {
  it('is tried again for as long as it takes, while the old token lives', () => {
    const engine = started().wait(225_000).fail();
    expect(engine.state.due?.reason).toBe('retry');
    expect(engine.valid).toBe('Bearer t1');
    for (let attempt = 2; attempt <= 50; attempt++) {
      engine.wait(engine.dueInMs ?? Number.NaN).fail('invalid_response');
      expect(engine.state.consecutiveFailures).toBe(attempt);
    }
    expect(engine.wait(75_000).valid).toBeUndefined();
    expect(engine.state.grant ?? engine.wait(60_000).state.grant).toMatchObject({ reason: 'retry' });
    expect(engine.succeed().state).toMatchObject({ consecutiveFailures: 0, lastFailure: undefined });
  });

  it('is retried in less of a hurry while a token is held, but before that ends', () => {
    const engine = started().wait(225_000);
    const delays: number[] = [];
    while (engine.valid !== undefined) {
      engine.fail();
      delays.push(engine.dueInMs ?? Number.NaN);
      engine.wait(engine.dueInMs ?? Number.NaN);
    }
    expect(delays).toEqual([500, 2000, 8000, 31_625, 15_812.5, 15_000, 15_000]);
    expect(engine.fail().dueInMs).toBe(15_000);
  });

  it('is not retried before Retry-After', () => {
    expect(new Engine().load().fail('unavailable', 20_000).dueInMs).toBe(20_000);
  });

  it('waits longer each time for a provider that rejects, while no token is held', () => {
    const engine = new Engine().load();
    const delays = Array.from({ length: 4 }, () => {
      const delayMs = engine.fail('rejected').dueInMs ?? Number.NaN;
      engine.wait(delayMs);
      return delayMs;
    });
    expect(delays).toEqual([15_000, 30_000, 60_000, 120_000]);
  });

  it.each([30_000, 200_000, 3_600_000])(
    'is retried, once the token of %i ms has ended, at most half a minute later',
    (lifetimeMs) => {
      const engine = new Engine().load().succeed(lifetimeMs).wait(lifetimeMs);
      for (let attempt = 1; attempt < 12; attempt++) engine.fail().wait(engine.dueInMs ?? Number.NaN);
      // Half of the step is certain, and the other half is left to chance, which this engine has none of.
      expect(engine.fail().dueInMs).toBe(15_000);
    },
  );

  it('counts half a minute from its beginning: a provider that hangs does not add to it', () => {
    const engine = new Engine().load();
    for (let attempt = 1; attempt < 12; attempt++)
      engine
        .wait(10_000)
        .fail()
        .wait(engine.dueInMs ?? Number.NaN);
    expect(engine.wait(10_000).fail().dueInMs).toBe(10_000);
  });

  it('does not begin another because requests ask', () => {
    const engine = new Engine().load().fail('rejected');
    for (let ask = 0; ask < 100; ask++) engine.wait(10);
    expect(engine.state.grantsBegun).toBe(1);
  });
});

describe('changed credentials', () => {
  it('cause a grant at once, and the old token stays until the new one is in hand', () => {
    const engine = started().wait(10_000).load();
    expect(engine.grant.reason).toBe('rotation');
    expect(engine.valid).toBe('Bearer t1');
    expect(engine.succeed().valid).toBe('Bearer t2');
  });

  it('take the place of a grant in flight, whose answer no longer counts', () => {
    const engine = started().wait(225_000);
    const overtaken = engine.grant;
    engine.load();
    expect(engine.grant).toMatchObject({ reason: 'rotation' });
    engine.apply({
      type: 'grant_ended',
      id: overtaken.id,
      outcome: { result: 'rejected', detail: 'old secret' },
    });
    expect(engine.grant.reason).toBe('rotation');
    expect(engine.state.consecutiveFailures).toBe(0);
  });

  it('wake the engine at once from the long wait after a rejection, with a fresh backoff', () => {
    const engine = new Engine().load();
    for (let n = 0; n < 6; n++) engine.fail('rejected').wait(engine.dueInMs ?? Number.NaN);
    engine.fail('rejected').wait(1000).load();
    expect(engine.grant.reason).toBe('rotation');
    expect(engine.fail('rejected').dueInMs).toBe(15_000);
  });

  it('that are rejected leave the old token to its end', () => {
    const engine = started().load().fail('rejected');
    expect(engine.valid).toBe('Bearer t1');
    expect(engine.state.lastFailure).toMatchObject({ result: 'rejected' });
  });

  it('that are rejected are tried several times before the old token ends, then once the ones before them', () => {
    const engine = started().load();
    const reasons: string[] = [];
    for (;;) {
      reasons.push(engine.fail('rejected').state.due?.reason ?? '');
      engine.wait(engine.dueInMs ?? Number.NaN);
      if (engine.valid === undefined) break;
    }
    const asked = reasons.join(' ');
    expect(asked).toMatch(/^(retry ){5,20}previous_credentials( retry)+$/);
    expect(engine.fail('rejected').dueInMs).toBe(15_000);
  });

  it('that are rejected do not end the service while the provider takes the ones before them, and stay to be seen', () => {
    const engine = started().load();
    while (engine.grant.reason !== 'previous_credentials') {
      engine.fail('rejected').wait(engine.dueInMs ?? Number.NaN);
    }
    expect(engine.valid).toBe('Bearer t1');
    engine.succeed();
    expect(engine.valid).toBe('Bearer t2');
    expect(engine.state).toMatchObject({
      token: { grantedTo: 'previous' },
      lastFailure: { result: 'rejected' },
    });
    engine.wait(engine.dueInMs ?? Number.NaN);
    expect(engine.grant.reason).toBe('scheduled');
    expect(engine.succeed().state).toMatchObject({ token: { grantedTo: 'newest' }, lastFailure: undefined });
  });

  it('have the ones before them to fall back on again after each success', () => {
    const engine = started().load();
    const reasonsUntilTheEnd = () => {
      const reasons: string[] = [];
      for (engine.wait(225_000); engine.valid !== undefined; engine.wait(engine.dueInMs ?? Number.NaN)) {
        reasons.push(engine.grant.reason);
        engine.fail('rejected');
      }
      return reasons;
    };
    engine.succeed();
    expect(reasonsUntilTheEnd()).toContain('previous_credentials');
    engine.succeed();
    expect(reasonsUntilTheEnd()).toContain('previous_credentials');
  });

  it('have nothing to fall back on when they were the first', () => {
    const engine = started().wait(225_000).succeed().wait(225_000);
    for (let attempt = 1; attempt <= 10; attempt++) {
      engine.fail('rejected');
      expect(engine.state.due?.reason).toBe('retry');
      engine.wait(engine.dueInMs ?? Number.NaN);
    }
  });

  it('do not fall back on what was rejected as the newest, or has been tried', () => {
    const engine = started().wait(1000).load().fail('rejected').wait(1000).load();
    expect(engine.fail('rejected').state).toMatchObject({ previousCredentials: 'rejected' });
    const tried = started().load();
    while (tried.grant.reason !== 'previous_credentials') {
      tried.fail('rejected').wait(tried.dueInMs ?? Number.NaN);
    }
    expect(tried.fail('rejected').state).toMatchObject({ previousCredentials: 'rejected' });
  });

  it('that the provider rejects and wants nothing of for a while are followed by the ones before them', () => {
    const engine = started().wait(298_000).load().fail('rejected', 20_000);
    expect(engine.dueInMs).toBe(20_000);
    expect(engine.state.due?.reason).toBe('previous_credentials');
  });

  it('that are rejected after the provider was away at the very end are followed at once by the ones before them', () => {
    const engine = started().load().fail().wait(299_000).fail('rejected');
    expect(engine.valid).toBeUndefined();
    expect(engine.state.due?.reason).toBe('previous_credentials');
    expect(engine.dueInMs).toBe(250);
  });

  it('written anew end a backoff, and are no reason for a grant while nothing fails', () => {
    const engine = new Engine().load().fail('rejected').wait(1000);
    expect(engine.apply({ type: 'credentials_rewritten' }).grant.reason).toBe('rotation');
    const healthy = started().wait(1000);
    expect(healthy.apply({ type: 'credentials_rewritten' }).state.grant).toBeUndefined();
  });

  it('written anew while a grant is in flight are tried at once if that fails, with what it has read before', () => {
    const engine = new Engine().load();
    expect(engine.apply({ type: 'credentials_rewritten' }).state.grantsBegun).toBe(1);
    engine.fail('rejected');
    expect(engine.state.due).toMatchObject({ reason: 'rotation' });
    expect(engine.dueInMs).toBe(0);
    const healthy = new Engine().load().apply({ type: 'credentials_rewritten' }).succeed();
    expect(healthy.state.due?.reason).toBe('scheduled');
  });

  it('that flap ten times a second cause five grants at once, then one every five seconds', () => {
    const engine = started();
    let grants = 0;
    for (let change = 0; change < 600; change++) {
      const before = engine.state.grantsBegun;
      engine.wait(100).load();
      if (engine.state.grantsBegun > before) grants += engine.state.grantsBegun - before;
      if (engine.state.grant !== undefined) engine.succeed();
    }
    expect(grants).toBeLessThanOrEqual(5 + 12);
    expect(grants).toBeGreaterThanOrEqual(12);
    engine.wait(5000);
    expect(engine.state.due?.reason === 'rotation').toBe(false);
  });
});

describe('a token that an upstream refuses', () => {
  it('is renewed, once for all who were refused', () => {
    const engine = started().wait(5000).refuse().refuse().refuse();
    expect(engine.grant).toMatchObject({ id: 2, reason: 'upstream_401' });
  });

  it('is not renewed in its first second', () => {
    expect(started().wait(999).refuse().state.grant).toBeUndefined();
    expect(started().wait(1000).refuse().grant.reason).toBe('upstream_401');
  });

  it('is not renewed when another is already in hand', () => {
    const engine = started().wait(5000);
    engine.apply({ type: 'refused_by_upstream', upstream: 'api', authorization: 'Bearer older' });
    expect(engine.state.grant).toBeUndefined();
  });

  it('is not renewed while grants are failing', () => {
    expect(started().wait(5000).refuse().fail().refuse().state.grant).toBeUndefined();
    expect(started().wait(225_000).fail().refuse().state.grant).toBeUndefined();
  });

  it('is not renewed by a second grant while one is in flight, whichever upstream refuses it', () => {
    expect(started().wait(5000).refuse('one').refuse('other').grant.id).toBe(2);
    expect(started().wait(225_000).refuse().grant.reason).toBe('scheduled');
  });

  it('is not renewed in its first second because the one before it was taken', () => {
    const engine = started().accept().wait(225_000).succeed();
    expect(engine.refuse().state.grant).toBeUndefined();
  });

  it('again right after renewal makes the next renewal wait, longer each time', () => {
    const engine = started().wait(5000).refuse().succeed(86_400_000);
    const gaps: number[] = [];
    for (let round = 0; round < 4; round++) {
      let gapMs = 0;
      while (engine.refuse().state.grant === undefined) {
        engine.wait(1000);
        gapMs += 1000;
      }
      gaps.push(gapMs);
      engine.succeed(86_400_000);
    }
    expect(gaps).toEqual([30_000, 60_000, 120_000, 240_000]);
  });
});

describe('a token that an upstream took and then refuses', () => {
  it('is renewed at once, however short the time since the last such renewal', () => {
    const engine = started();
    for (let revocation = 0; revocation < 5; revocation++) {
      engine.accept().refuse();
      expect(engine.grant.reason).toBe('upstream_401');
      engine.succeed();
    }
    expect(engine.accept().refuse().state.grant).toBeUndefined();
  });

  it('is not renewed more often than every 30 s after five times, whatever is accepted in between', () => {
    const engine = started();
    let forced = 0;
    for (let tenth = 0; tenth < 6000; tenth++) {
      engine.wait(100);
      if (engine.state.grant !== undefined) engine.succeed();
      if (engine.accept().refuse().state.grant?.reason !== 'upstream_401') continue;
      forced += 1;
      engine.succeed();
    }
    expect(forced).toBeLessThanOrEqual(5 + 600 / 30);
    expect(forced).toBeGreaterThanOrEqual(20);
  });

  it('is renewed although another upstream refuses every token', () => {
    const engine = started().wait(2000).refuse('broken').succeed().wait(2000).refuse('broken');
    expect(engine.state.grant).toBeUndefined();
    expect(engine.accept('api').refuse('broken').state.grant).toBeUndefined();
    expect(engine.refuse('api').grant.reason).toBe('upstream_401');
  });

  it('is not one that was taken before the renewal: that answer came late', () => {
    const engine = started().wait(2000).refuse().succeed().accept('api', 'Bearer t1').wait(2000);
    expect(engine.refuse().state.grant).toBeUndefined();
  });
});

describe('what upstreams have made of tokens', () => {
  it('is kept of those heard of last, without a token that has ended, however many names come and go', () => {
    const engine = started();
    for (let name = 0; name < 1000; name++) engine.accept(`r-${name}`).wait(225_000).succeed();
    expect(engine.state.upstreams.size).toBe(256);
    expect(engine.state.upstreams.has('r-999')).toBe(true);
    expect(JSON.stringify([...engine.state.upstreams])).not.toMatch(/Bearer|t\d/);
  });

  it('stays of one that is heard of again', () => {
    const engine = started();
    for (let name = 0; name < 1000; name++) engine.accept('api').accept(`r-${name}`);
    expect(engine.refuse('api').grant.reason).toBe('upstream_401');
  });

  it('holds of the same token that is granted again', () => {
    const engine = started().accept().wait(225_000);
    engine.end({ result: 'success', accessToken: 't1', lifetimeMs: 300_000 });
    expect(engine.refuse().grant.reason).toBe('upstream_401');
  });
});

it('an upstream that refuses every token forces no more renewals because scheduled ones come in between', () => {
  const engine = started();
  let forced = 0;
  for (let second = 0; second < 3600; second++) {
    engine.wait(1000);
    if (engine.state.grant !== undefined) engine.succeed(10_000);
    if (engine.refuse().state.grant === undefined) continue;
    forced += 1;
    engine.succeed(10_000);
  }
  expect(forced).toBeLessThanOrEqual(10);
});

describe('whatever happens', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 400_000 }) }),
    fc.record({ do: fc.constant('step' as const), ms: fc.integer({ min: -7_200_000, max: 7_200_000 }) }),
    fc.record({ do: fc.constant('succeed' as const), ms: fc.integer({ min: 1, max: 600_000 }) }),
    fc.record({
      do: fc.constantFrom('load' as const, 'refuse' as const, 'fail' as const, 'reject' as const),
      ms: fc.constant(0),
    }),
  );

  it('an expired token is never valid, a plan is never lost, and time alone always leads to a grant', () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (steps, random) => {
          const engine = new Engine().load();
          engine.random = random;
          for (const { do: what, ms } of steps) {
            if (what === 'wait') engine.wait(ms);
            else if (what === 'step') engine.now = { ...engine.now, wallMs: engine.now.wallMs + ms };
            else if (what === 'load') engine.load();
            else if (what === 'refuse') engine.refuse();
            else if (engine.state.grant === undefined) continue;
            else if (what === 'succeed') engine.succeed(ms);
            else engine.fail(what === 'fail' ? 'unavailable' : 'rejected');

            const { token, grant, due } = engine.state;
            expect(grant !== undefined || due !== undefined).toBe(true);
            if (engine.valid !== undefined)
              expect(token && hasPassed(token.expiresAt, engine.now)).toBe(false);
          }
          if (engine.state.grant === undefined) engine.wait(600_000);
          expect(engine.state.grant).toBeDefined();
        },
      ),
    );
  });
});
