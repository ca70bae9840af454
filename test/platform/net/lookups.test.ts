/** Names that many ask for, and names that no server answers for. */

import type { LookupFunction } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DNS_BOUNDS, SharedLookups, sharesOf } from '../../../src/platform/net/lookups.ts';
import { ManualClock, settle } from '../../support/manual-clock.ts';
import { heldLookup } from './held-lookup.ts';

const LATE_MS = 1000;

const NAME = 'api.example.com';

const BOUNDS = sharesOf(16).upstreams;

describe('names that come from outside', () => {
  function asking() {
    const { lookup, asked, answer } = heldLookup();
    const lookups = new SharedLookups(lookup, BOUNDS);
    const told: string[] = [];
    const ask = (name: string) => lookups.ask(name, { all: true }, () => told.push(name));
    const first = Array.from({ length: BOUNDS.atOnce }, (_, index) => `${index}.example.com`);
    for (const name of first) ask(name);
    return { lookups, asked, answer, told, ask, first };
  }

  it('are looked up so many at once, the others as soon as these are over', async () => {
    const { asked, answer, told, ask, first } = asking();
    const others = Array.from({ length: 1000 }, (_, index) => `other-${index}.example.com`);
    for (const name of [...others, ...others]) ask(name);
    expect(asked).toEqual(first);
    for (let over = 1; over <= others.length; over++) {
      answer();
      expect(asked).toHaveLength(BOUNDS.atOnce + over);
    }
    for (const _ of first) answer();
    await settle();
    expect(asked).toEqual([...first, ...others]);
    expect(told).toEqual([...first, ...others.flatMap((name) => [name, name])]);
  });

  it('are not looked up once nobody waits for them', async () => {
    const { asked, answer, told, ask, first } = asking();
    const leave = Array.from({ length: 1000 }, (_, index) => ask(`other-${index}.example.com`));
    ask('last.example.com');
    for (const one of leave) one();
    for (let over = 0; over <= BOUNDS.atOnce; over++) answer();
    await settle();
    expect(asked).toEqual([...first, 'last.example.com']);
    expect(told).toEqual([...first, 'last.example.com']);
  });

  it('wait for no lookup that Node refuses to begin', async () => {
    const lookups = new SharedLookups(() => {
      throw new TypeError('no name');
    }, BOUNDS);
    const failed: unknown[] = [];
    for (let times = 0; times < 3 * BOUNDS.atOnce; times++) {
      lookups.ask(`${times}`, {}, (error) => failed.push(error?.message));
    }
    await settle();
    expect(failed).toEqual(new Array(3 * BOUNDS.atOnce).fill('no name'));
  });
});

it('addresses of another family, or one in place of all, are another lookup', () => {
  const { lookup, asked } = heldLookup();
  const lookups = new SharedLookups(lookup, BOUNDS);
  for (const options of [{ all: true }, { all: true, family: 4 }, {}, { all: true, hints: 32 }]) {
    lookups.ask(NAME, options, () => {});
    lookups.ask(NAME, { ...options }, () => {});
  }
  expect(asked).toHaveLength(4);
});

it('an exception of one waiting caller does not affect the others', async () => {
  const { lookup, answer } = heldLookup();
  const lookups = new SharedLookups(lookup, BOUNDS);
  const thrown = Promise.withResolvers<unknown>();
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.once('uncaughtException', thrown.resolve);
  onTestFinished(() => {
    for (const listener of listeners) process.on('uncaughtException', listener);
  });
  lookups.ask(NAME, {}, () => {
    throw new Error('mine alone');
  });
  const told = new Promise((resolve) => lookups.ask(NAME, {}, resolve));
  answer();
  expect(await thrown.promise).toMatchObject({ message: 'mine alone' });
  expect(await told).toBeNull();
});

describe('a lookup whose answer does not come', () => {
  it('is shared for a second; who asks later is answered by another', async () => {
    const clock = new ManualClock();
    const asked: ((error: null) => void)[] = [];
    const lookups = new SharedLookups(
      (_name, _options, told) => {
        asked.push((error) => told(error, []));
      },
      BOUNDS,
      clock,
    );
    const told: number[] = [];
    const ask = (who: number) => lookups.ask(NAME, {}, () => void told.push(who));
    ask(0);
    await clock.advance(LATE_MS - 1);
    ask(1);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    ask(2);
    expect(asked).toHaveLength(2);
    asked[1]?.(null);
    await settle();
    expect(told).toEqual([2]);
    asked[0]?.(null);
    await settle();
    expect(told).toEqual([2, 0, 1]);
  });

  it.each([
    ['a few others of its name', BOUNDS],
    ['if it is asked of DNS, no other of its name', DNS_BOUNDS],
  ])('has %s beside it, and leaves places to other names', async (_, bounds) => {
    const clock = new ManualClock();
    const asked: string[] = [];
    const lookups = new SharedLookups((name) => void asked.push(name), bounds, clock);
    for (let second = 0; second < 10; second++) {
      lookups.ask(NAME, {}, () => {});
      await clock.advance(LATE_MS);
    }
    expect(asked).toEqual(Array.from({ length: bounds.ofName }, () => NAME));
    lookups.ask('other.example.com', {}, () => {});
    expect(asked.at(-1)).toBe('other.example.com');
  });
});

describe('names that no server answers for', () => {
  /** What the system takes by default to give one up: two questions of 5 s, and again for a name of the search list. */
  const GIVEN_UP_MS = 20_000;
  /** After which it asks again if there is no answer. */
  const ASKED_AGAIN_MS = 5000;

  function silentFor(hung: ReadonlySet<string>, bounds = BOUNDS) {
    const clock = new ManualClock();
    const asked: string[] = [];
    /** Whose first question is lost the next time. */
    const lost = new Set<string>();
    const lookup: LookupFunction = (name, _, told) => {
      asked.push(name);
      const found = (): void => told(null, [{ address: '127.0.0.1', family: 4 }]);
      if (lost.delete(name)) clock.after(ASKED_AGAIN_MS, found);
      else if (!hung.has(name)) process.nextTick(found);
      else
        clock.after(GIVEN_UP_MS, () => told(Object.assign(new Error('silence'), { code: 'EAI_AGAIN' }), []));
    };
    const lookups = new SharedLookups(lookup, bounds, clock);
    const answered: string[] = [];
    const ask = (name: string, party?: string) =>
      lookups.ask(name, { all: true }, () => answered.push(name), party);
    /** Each of them by one who has 5 s, as a connection does. */
    const askAll = async (names: Iterable<string>): Promise<void> => {
      const leave = Array.from(names, (name) => ask(name));
      await clock.advance(5000);
      for (const one of leave) one();
    };
    /** In the turn in which it is asked. */
    const isAskedAtOnce = (name: string): boolean => {
      ask(name);
      return asked.at(-1) === name;
    };
    return { clock, asked, lost, answered, ask, askAll, isAskedAtOnce };
  }

  const names = (count: number): Set<string> =>
    new Set(Array.from({ length: count }, (_, index) => `hung-${index}.example.com`));

  it.each([1, 2, 4, 8])('do not delay other names, if they are %i', async (count) => {
    const hung = names(count);
    const { askAll, isAskedAtOnce } = silentFor(hung);
    for (let times = 0; times < 20; times++) {
      await askAll(hung);
      expect(isAskedAtOnce(`api-${times}.example.com`)).toBe(true);
    }
  });

  it('keep others until they are known, if they are as many as can be asked at once', async () => {
    const hung = names(3 * BOUNDS.atOnce);
    const { askAll, isAskedAtOnce, clock, answered } = silentFor(hung);
    await askAll(hung);
    expect(isAskedAtOnce(NAME)).toBe(false);
    await clock.advance(GIVEN_UP_MS);
    expect(answered).toContain(NAME);
    // Each of them becomes known in its turn.
    for (let times = 0; times < 24; times++) await askAll(hung);
    for (let times = 0; times < 20; times++) {
      await askAll(hung);
      expect(isAskedAtOnce(`api-${times}.example.com`)).toBe(true);
    }
  });

  it('count as other names from their next answer on', async () => {
    const hung = names(2 * BOUNDS.late);
    const { asked, ask, askAll, clock } = silentFor(hung);
    await askAll(hung);
    await clock.advance(GIVEN_UP_MS);
    const all = [...hung];
    hung.clear();
    for (const name of all) ask(name);
    await settle();
    asked.length = 0;
    for (const name of all) hung.add(name);
    for (const name of all) ask(name);
    expect(asked).toEqual(all);
  });

  it('harm only their own caller, if they never end', async () => {
    const hung = names(1000);
    const { ask, asked, isAskedAtOnce, clock } = silentFor(hung);
    for (let times = 0; times < 10; times++) {
      for (const name of hung) ask(name, '*.example.com');
      await clock.advance(1000);
      expect(isAskedAtOnce(`api-${times}.example.com`)).toBe(true);
    }
    expect(asked.filter((name) => hung.has(name))).toHaveLength(BOUNDS.ofParty);
  });

  const PARTY = '*.example.com';
  /** Whose lookups have ended once, so that they are known to hang. */
  async function hangingParty(bounds = BOUNDS, also: readonly string[] = []) {
    const hung = names(1000);
    const surroundings = silentFor(hung, bounds);
    const { ask, clock } = surroundings;
    for (const name of also) {
      hung.add(name);
      ask(name);
    }
    for (const name of names(1000)) ask(name, PARTY);
    await clock.advance(GIVEN_UP_MS);
    return { ...surroundings, hung };
  }

  it.each([
    ['upstreams', BOUNDS],
    ['all others', sharesOf(16).own],
  ])('keep no name of %s that was once answered after a second question', async (_, bounds) => {
    const { ask, asked, lost, answered, clock, isAskedAtOnce } = await hangingParty(bounds);
    lost.add(NAME);
    ask(NAME);
    await clock.advance(ASKED_AGAIN_MS);
    expect(answered).toContain(NAME);
    asked.length = 0;
    expect(isAskedAtOnce(NAME)).toBe(true);
  });

  it.each([
    ['upstreams', BOUNDS],
    ['all others', sharesOf(16).own],
  ])('keep no name of %s that is answered again, if they are of one party', async (_, bounds) => {
    const { hung, isAskedAtOnce } = await hangingParty(bounds, [NAME]);
    hung.delete(NAME);
    expect(isAskedAtOnce(NAME)).toBe(true);
  });

  it('keep a name that is answered again until the first of them is given up, if they are of several', async () => {
    const other = 'other.example.com';
    const { hung, ask, asked, clock } = await hangingParty(BOUNDS, [other, NAME]);
    hung.delete(NAME);
    ask(other);
    ask(NAME);
    asked.length = 0;
    await clock.advance(GIVEN_UP_MS);
    expect(asked[0]).toBe(NAME);
  });
});

it.each([2, 3, 8, 16, 512])('of %i threads no lookup waits within the system for another one', (threads) => {
  const { own, upstreams } = sharesOf(threads);
  expect(own.atOnce + upstreams.atOnce).toBe(threads);
  expect(Math.min(own.atOnce, upstreams.atOnce)).toBeGreaterThan(0);
});
