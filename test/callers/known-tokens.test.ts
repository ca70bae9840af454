import { hash } from 'node:crypto';
import { expect, it } from 'vitest';
import type { ServiceAccountCaller } from '../../src/callers/caller.ts';
import { createKnownTokens } from '../../src/callers/service-account-verifier.ts';
import { type Instant, later } from '../../src/platform/time/clock.ts';
import { garbageCollector } from '../support/collect-garbage.ts';
import { volume } from '../support/volume.ts';

type KnownToken = Parameters<ReturnType<typeof createKnownTokens>['set']>[1];

const KEPT_OF_ONE_CALLER = 8;

const MAX_KNOWN = 20_000;

/** As long as a review counts. */
const USEFUL_FOR_MS = 300_000;

const NOW = at(0);

function at(ms: number): Instant {
  return { monotonicMs: ms, wallMs: ms };
}

function confirmed(name: string, reviewedAt = NOW): KnownToken {
  const caller: ServiceAccountCaller = {
    kind: 'service_account',
    namespace: 'shop',
    serviceAccount: 'web',
    pod: { name, uid: name },
  };
  return { kind: 'confirmed', caller, expiresAt: later(reviewedAt, 3_600_000), reviewedAt };
}

it('a flood by one caller drives out only its own older tokens', () => {
  const known = createKnownTokens(USEFUL_FOR_MS);
  for (let n = 0; n < KEPT_OF_ONE_CALLER; n++) known.set(`quiet-${n}`, confirmed('quiet'), NOW);
  const flood = volume(MAX_KNOWN + 5000, 5 * MAX_KNOWN);
  for (let n = 0; n < flood; n++) known.set(`flood-${n}`, confirmed('flood'), NOW);
  expect(known.size).toBe(MAX_KNOWN);
  for (let n = 0; n < KEPT_OF_ONE_CALLER; n++) expect(known.get(`quiet-${n}`)).toBeDefined();
  expect(known.get(`flood-${flood - 1}`)).toBeDefined();
  expect(known.get('flood-0')).toBeUndefined();
});

it('many tokens of one caller are remembered while nobody else needs the room', () => {
  const known = createKnownTokens(USEFUL_FOR_MS);
  const holders = Array.from({ length: 500 }, (_, n) => `holder-${n}`);
  for (const holder of holders) known.set(holder, confirmed('unbound'), NOW);
  expect(holders.filter((holder) => known.get(holder) === undefined)).toEqual([]);

  for (let n = 0; n < MAX_KNOWN - KEPT_OF_ONE_CALLER; n++) known.set(`pod-${n}`, confirmed(`pod-${n}`), NOW);

  expect(known.size).toBe(MAX_KNOWN);
  expect(holders.filter((holder) => known.get(holder) !== undefined)).toEqual(
    holders.slice(-KEPT_OF_ONE_CALLER),
  );
  expect(known.get('pod-0')).toBeDefined();
});

it('callers with many tokens make room in turn', () => {
  const known = createKnownTokens(USEFUL_FOR_MS);
  const each = MAX_KNOWN / 2;
  for (let n = 0; n < each; n++) {
    known.set(`first-${n}`, confirmed('first'), NOW);
    known.set(`second-${n}`, confirmed('second'), NOW);
  }

  for (let n = 0; n < each; n++) known.set(`pod-${n}`, confirmed(`pod-${n}`), NOW);

  expect(known.get(`first-${each - 1}`)).toBeDefined();
  expect(known.get(`second-${each - 1}`)).toBeDefined();
  expect(known.get('pod-0')).toBeDefined();
});

it('the number for all callers is bounded, and the oldest goes first', () => {
  const known = createKnownTokens(USEFUL_FOR_MS);
  for (let n = 0; n < MAX_KNOWN + 10; n++) known.set(`token-${n}`, confirmed(`pod-${n}`), NOW);
  expect(known.size).toBe(MAX_KNOWN);
  expect(known.get('token-9')).toBeUndefined();
  expect(known.get('token-10')).toBeDefined();
});

it('a token that is set again counts as new', () => {
  const known = createKnownTokens(USEFUL_FOR_MS);
  for (let n = 0; n < MAX_KNOWN; n++) known.set(`token-${n}`, confirmed('web'), NOW);
  known.set('token-0', confirmed('web'), NOW);
  known.set('another', confirmed('web'), NOW);
  expect(known.get('token-0')).toBeDefined();
  expect(known.get('token-1')).toBeUndefined();
});

it('an unused token is forgotten, so pods whose tokens are rotated have little more than one each', () => {
  const known = createKnownTokens(USEFUL_FOR_MS);
  const pods = volume(500, 2000);
  const [askedEveryMs, replacedEveryMs, endMs] = [210_000, 2_880_000, 5 * 3_600_000];
  for (let nowMs = 0; nowMs < endMs; nowMs += askedEveryMs) {
    for (let pod = 0; pod < pods; pod++) {
      const generation = Math.floor(nowMs / replacedEveryMs + pod / pods);
      known.set(`${pod}-${generation}`, confirmed(`pod-${pod}`, at(nowMs)), at(nowMs));
    }
  }
  expect(known.size).toBeGreaterThanOrEqual(pods);
  expect(known.size).toBeLessThan(1.2 * pods);
});

it('a denial is forgotten when it expires', () => {
  const known = createKnownTokens(USEFUL_FOR_MS);
  const { caller } = confirmed('denied');
  known.set('denied', { kind: 'denied', caller, until: at(10_000) }, NOW);
  known.set('other', confirmed('other'), at(9999));
  expect(known.size).toBe(2);
  known.set('next', confirmed('next'), at(10_000));
  expect(known.get('denied')).toBeUndefined();
  expect(known.size).toBe(2);
});

it('a caller with one token takes at most 250 bytes besides its description', () => {
  const collect = garbageCollector();
  const usedBytes = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const callers = 10_000;
  const known = createKnownTokens(USEFUL_FOR_MS);
  const entries = Array.from({ length: callers }, (_, n) => confirmed(`pod-${n}`));
  const before = usedBytes();
  for (const [n, entry] of entries.entries()) known.set(hash('sha256', `token-${n}`, 'latin1'), entry, NOW);
  expect((usedBytes() - before) / callers).toBeLessThan(250);
  expect(known.size).toBe(entries.length);
});
