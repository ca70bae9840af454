import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RoundRobin } from '../../../src/proxy/io/collections.ts';

it('each waiting member gets one turn in the order of arrival', () => {
  const step = fc.tuple(fc.constantFrom('add', 'delete', 'behind', 'next', 'clear'), fc.nat({ max: 5 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
      const turns = new RoundRobin<number>();
      const expected = new Set<number>();
      for (const [act, one] of steps) {
        if (act === 'add') {
          turns.add(one);
          expected.add(one);
        } else if (act === 'delete') expect(turns.delete(one)).toBe(expected.delete(one));
        else if (act === 'behind') {
          const waited = expected.delete(one);
          expect(turns.goBehind(one)).toBe(waited);
          if (waited) expected.add(one);
        } else if (act === 'next') {
          const [first] = expected;
          expect(turns.next()).toBe(first);
          if (first !== undefined) expected.delete(first);
        } else {
          turns.clear();
          expected.clear();
        }
        expect(turns.any).toBe(expected.size > 0);
        expect(turns.all()).toEqual([...expected]);
      }
    }),
  );
});

it.each(['goes behind', 'leaves and comes back'])(
  'many members take turns repeatedly while each %s',
  (how) => {
    const turns = new RoundRobin<number>();
    const expected = Array.from({ length: 50 }, (_, one) => one);
    for (const one of expected) turns.add(one);
    for (let turn = 0; turn < 500; turn++) {
      const first = expected.shift() as number;
      if (how === 'goes behind') expect(turns.goBehind(first)).toBe(true);
      else {
        expect(turns.next()).toBe(first);
        turns.add(first);
      }
      expected.push(first);
      expect(turns.all()).toEqual(expected);
    }
  },
);
