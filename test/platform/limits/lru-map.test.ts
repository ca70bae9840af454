import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ExpiringMap, LruMap } from '../../../src/platform/limits/lru-map.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { volume } from '../../support/volume.ts';

const MAX = 12;
const MAX_WEIGHT = 40;

const key = fc.integer({ min: 0, max: 19 });
const operation = fc.oneof(
  fc.record({ do: fc.constant('set' as const), key, value: fc.integer({ min: 0, max: 12 }) }),
  fc.record({ do: fc.constant('get' as const), key }),
  fc.record({ do: fc.constant('peek' as const), key }),
  fc.record({ do: fc.constant('delete' as const), key }),
);
const sequence = fc.array(operation, { minLength: 200, maxLength: 400 });

/** The same as a list, the least recently used first. */
class PlainLru {
  entries: (readonly [number, number])[] = [];
  readonly evicted: number[] = [];
  readonly #weigh: (value: number) => number;

  constructor(weigh: (value: number) => number) {
    this.#weigh = weigh;
  }

  peek(key: number): number | undefined {
    return this.entries.find(([own]) => own === key)?.[1];
  }

  get(key: number): number | undefined {
    const found = this.entries.find(([own]) => own === key);
    if (found !== undefined) this.entries = [...this.entries.filter(([own]) => own !== key), found];
    return found?.[1];
  }

  set(key: number, value: number): void {
    this.delete(key);
    if (this.#weigh(value) > MAX_WEIGHT / 8) return;
    this.entries.push([key, value]);
    while (this.entries.length > MAX || this.#weight() > MAX_WEIGHT) {
      this.evicted.push((this.entries.shift() as readonly [number, number])[0]);
    }
  }

  delete(key: number): void {
    this.entries = this.entries.filter(([own]) => own !== key);
  }

  #weight(): number {
    return this.entries.reduce((sum, [, value]) => sum + this.#weigh(value), 0);
  }
}

it.each([
  ['entries', undefined],
  ['weights', (value: number) => value],
] as const)('a map bounded by %s holds after each of 200 steps and more what a list would', (_, weigh) => {
  fc.assert(
    fc.property(sequence, (steps) => {
      const evicted: number[] = [];
      const map = new LruMap<number, number>({
        max: MAX,
        ...(weigh && { maxWeight: MAX_WEIGHT, weigh }),
        onEvicted: (_, key) => evicted.push(key),
      });
      const plain = new PlainLru(weigh ?? (() => 0));
      for (const step of steps) {
        if (step.do === 'set') {
          map.set(step.key, step.value);
          plain.set(step.key, step.value);
        } else if (step.do === 'get') expect(map.get(step.key)).toBe(plain.get(step.key));
        else if (step.do === 'peek') expect(map.peek(step.key)).toBe(plain.peek(step.key));
        else {
          map.delete(step.key);
          plain.delete(step.key);
        }
        expect([...map.entries()]).toEqual(plain.entries);
        expect(map.size).toBe(plain.entries.length);
      }
      expect(evicted).toEqual(plain.evicted);
    }),
    { numRuns: volume(30, 100) },
  );
});

it('an entry with a time has its value until then, and none from then on', async () => {
  const clock = new ManualClock();
  const map = new ExpiringMap<string, number>(clock, 2);
  map.set('a', 1, 1000);
  await clock.advance(999);
  expect(map.get('a')).toBe(1);
  await clock.advance(1);
  expect(map.get('a')).toBeUndefined();
});

it('an entry with a time can be put in anew, forgotten before, and pushed out by others', () => {
  const map = new ExpiringMap<string, number>(new ManualClock(), 2);
  map.set('a', 1, 1000);
  map.set('a', 2, 1000);
  expect(map.get('a')).toBe(2);
  map.delete('a');
  expect(map.get('a')).toBeUndefined();
  for (const name of ['b', 'c', 'd']) map.set(name, 0, 1000);
  expect([map.get('b'), map.get('c'), map.get('d')]).toEqual([undefined, 0, 0]);
});
