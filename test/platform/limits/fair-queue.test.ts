import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  FairPlaces,
  FairQueue,
  type FairQueueLimits,
  FairRing,
  type Place,
  type Turn,
} from '../../../src/platform/limits/fair-queue.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { volume } from '../../support/volume.ts';

const PARTIES = ['a', 'b', 'c', 'd'];
const PATIENCE_MS = 100;

const party = fc.constantFrom(...PARTIES);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('enter' as const), party }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), which: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(40) }) },
);
const sequence = fc.array(step, { minLength: 200, maxLength: 300 });

interface Work {
  readonly party: string;
  readonly sinceMs: number;
  turn?: Turn | 'over';
}

/** Looks through lists at each step. */
class PlainQueue {
  readonly #limits: FairQueueLimits;
  readonly all: Work[] = [];
  /** Parties with work that waits, the one whose turn is next first. */
  #order: string[] = [];
  nowMs = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = limits;
  }

  #of(party: string): readonly Work[] {
    return this.all.filter((work) => work.turn === undefined && work.party === party);
  }

  #mayRun(party: string): boolean {
    const { atOnce, spared = 0 } = this.#limits;
    const running = this.all.filter(({ turn }) => turn === 'come');
    return running.length < atOnce && running.filter((work) => work.party === party).length < atOnce - spared;
  }

  enter(party: string): void {
    const { mostWaiting } = this.#limits;
    const work: Work = { party, sinceMs: this.nowMs };
    const waiting = this.all.filter(({ turn }) => turn === undefined).length;
    const own = this.#of(party).length;
    if (this.#mayRun(party)) work.turn = 'come';
    else if (waiting >= mostWaiting) {
      const most = Math.max(0, ...this.#order.map((one) => this.#of(one).length));
      if (most > own + 1) {
        const greediest = this.#order.find((one) => this.#of(one).length === most) as string;
        this.#settle(this.#of(greediest).at(-1) as Work, 'crowded_out');
      } else work.turn = 'crowded_out';
    }
    this.all.push(work);
    if (work.turn === undefined && !this.#order.includes(party)) this.#order.push(party);
  }

  end(work: Work): void {
    work.turn = 'over';
    const next = this.#order.find((party) => this.#mayRun(party));
    if (next === undefined) return;
    const [first] = this.#of(next) as readonly [Work];
    this.#order = [...this.#order.filter((party) => party !== next), next];
    this.#settle(first, 'come');
  }

  leave(work: Work): void {
    this.#settle(work, 'left');
  }

  wait(ms: number): void {
    this.nowMs += ms;
    for (const work of this.all) {
      if (work.turn === undefined && work.sinceMs + PATIENCE_MS <= this.nowMs) this.#settle(work, 'too_late');
    }
  }

  #settle(work: Work, turn: Turn): void {
    work.turn = turn;
    if (this.#of(work.party).length === 0) this.#order = this.#order.filter((party) => party !== work.party);
  }
}

const LIMITS: Readonly<Record<string, FairQueueLimits>> = {
  'one at a time': { atOnce: 1, mostWaiting: 6, timeoutMs: PATIENCE_MS },
  'some at a time': { atOnce: 3, mostWaiting: 5, timeoutMs: PATIENCE_MS },
  'a place spared': { atOnce: 3, spared: 1, mostWaiting: 5, timeoutMs: PATIENCE_MS },
  'no room to wait': { atOnce: 2, mostWaiting: 0, timeoutMs: PATIENCE_MS },
};

describe('a fair queue', () => {
  it.each(Object.entries(LIMITS))('with %s gives the turns that plain lists would', async (_, limits) => {
    await fc.assert(
      fc.asyncProperty(sequence, async (steps) => {
        const clock = new ManualClock(() => Promise.resolve());
        const queue = new FairQueue(clock, limits);
        const places: Place[] = [];
        const turns: (Turn | undefined)[] = [];
        const plain = new PlainQueue(limits);
        const chosen = (turn: Turn | undefined, which: number): number => {
          const those = plain.all.flatMap((work, index) => (work.turn === turn ? [index] : []));
          return those[which % Math.max(1, those.length)] ?? -1;
        };
        for (const step of steps) {
          if (step.do === 'enter') {
            const index = places.length;
            const place = queue.enter(step.party);
            places.push(place);
            turns.push(undefined);
            void place.turn.then((turn) => {
              turns[index] = turn;
            });
            plain.enter(step.party);
          } else if (step.do === 'end') {
            const index = chosen('come', step.which);
            places[index]?.end();
            // Once more, which does nothing.
            places[index]?.end();
            if (index >= 0) plain.end(plain.all[index] as Work);
          } else if (step.do === 'leave') {
            const index = chosen(undefined, step.which);
            if (index >= 0) {
              expect(places[index]?.leave()).toBe(true);
              plain.leave(plain.all[index] as Work);
            }
            expect(places[index]?.leave() ?? false).toBe(false);
          } else {
            await clock.advance(step.ms);
            plain.wait(step.ms);
          }
          await Promise.resolve();
          expect(turns.map((turn, index) => (plain.all[index]?.turn === 'over' ? 'over' : turn))).toEqual(
            plain.all.map(({ turn }) => turn),
          );
          expect(clock.pendingTimers).toBe(plain.all.filter(({ turn }) => turn === undefined).length);
        }
      }),
      { numRuns: volume(15, 40) },
    );
  });

  it('without parties keeps no place free', async () => {
    const queue = new FairQueue(new ManualClock(), {
      ...LIMITS['one at a time'],
      atOnce: 2,
      spared: 1,
    } as never);
    expect(await Promise.all([queue.enter().turn, queue.enter().turn])).toEqual(['come', 'come']);
    queue.enter();
    expect(queue.enter().leave()).toBe(true);
  });
});

it('a fair ring skips those that may not run, and they keep their turn', () => {
  const ring = new FairRing<string>();
  for (const entry of ['a1', 'a2', 'b1', 'c1']) ring.add(entry[0], entry);
  expect(ring.next((party) => party !== 'a')).toBe('b1');
  expect([ring.next(), ring.next(), ring.next(), ring.next()]).toEqual(['a1', 'c1', 'a2', undefined]);
  expect(ring.size).toBe(0);
});

it('a fair ring equals plain lists after each of 200 and more steps', () => {
  const change = fc.record({ party, adds: fc.boolean(), which: fc.nat(50) });
  fc.assert(
    fc.property(fc.array(change, { minLength: 200, maxLength: 300 }), (steps) => {
      const ring = new FairRing<{ readonly of: string }>();
      let lines: (readonly [string, { readonly of: string }[]])[] = [];
      for (const { party: of, adds, which } of steps) {
        const line = lines.find(([name]) => name === of)?.[1] ?? [];
        if (adds) {
          const entry = { of };
          ring.add(of, entry);
          if (line.push(entry) === 1) lines.push([of, line]);
        } else {
          const [entry = { of }] = line.splice(which % Math.max(1, line.length), 1);
          ring.remove(of, entry);
          lines = lines.filter(([, those]) => those.length > 0);
        }
        const size = Math.max(0, ...lines.map(([, those]) => those.length));
        const all = lines.flatMap(([, those]) => those);
        expect([...ring].every((entry, index) => entry === all[index])).toBe(true);
        expect([...ring.most()]).toEqual(lines.find(([, those]) => those.length === size)?.[1] ?? []);
        expect(ring.sizeOf(of)).toBe(line.length);
        expect([[...ring].length, ring.size]).toEqual([all.length, all.length]);
      }
    }),
    { numRuns: volume(15, 40) },
  );
});

it('a place is given up by the newest of the party with the most, for one with fewer, and is free once the work has ended', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(party, fc.boolean(), fc.nat(20)), { minLength: 200 }),
      async (steps) => {
        const places = new FairPlaces(5);
        const all: { readonly of: string; readonly work: PromiseWithResolvers<number>; state: unknown }[] =
          [];
        for (const [of, begins, which] of steps) {
          const held = all.filter(({ state }) => state === 'waits');
          if (begins) {
            const count = (name: string) => held.filter((one) => one.of === name).length;
            const most = Math.max(...PARTIES.map(count));
            const one = { of, work: Promise.withResolvers<number>(), state: 'waits' as unknown };
            const isFull = held.length === 5;
            let begun = false;
            const during = places.during(of, () => {
              begun = true;
              return one.work.promise;
            });
            void during.then((state) => {
              one.state = state;
            });
            await new Promise(setImmediate);
            expect(begun).toBe(!isFull || most > count(of) + 1);
            const left = held.filter(({ state }) => state !== 'waits');
            expect(left.length).toBe(isFull && begun ? 1 : 0);
            for (const { of: name, state } of left) {
              expect([state, count(name)]).toEqual([undefined, most]);
              expect(held.findLast((other) => other.of === name)?.state).toBeUndefined();
            }
            all.push(one);
          } else {
            const one = held[which % Math.max(1, held.length)];
            one?.work.resolve(which);
            await new Promise(setImmediate);
            if (one !== undefined) expect(one.state).toBe(which);
          }
        }
      },
    ),
    { numRuns: 10 },
  );
});
