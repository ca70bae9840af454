import fc from 'fast-check';
import { expect, it } from 'vitest';
import { OpenStreams } from '../../../src/proxy/http2/open-streams.ts';

it('finds the streams that are open, in the order of their identifiers, however they come and go', () => {
  // Identifiers far apart meet at one place.
  const gap = fc.constantFrom(1, 1, 1, 16, 32, 64, 1000);
  const step = fc.oneof(fc.record({ open: gap }), fc.record({ close: fc.nat({ max: 200 }) }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const streams = new OpenStreams<{ readonly id: number }>();
      const expected = new Map<number, { readonly id: number }>();
      let id = 1;
      for (const each of steps) {
        if ('open' in each) {
          id += 2 * each.open;
          const stream = { id };
          streams.add(stream);
          expected.set(id, stream);
        } else {
          const closed = [...expected.keys()][each.close % Math.max(1, expected.size)] ?? 7;
          streams.delete(closed);
          expected.delete(closed);
          expect(streams.get(closed)).toBeUndefined();
        }
        expect(streams.size).toBe(expected.size);
      }
      expect([...streams]).toEqual([...expected.values()]);
      for (const [known, stream] of expected) expect(streams.get(known)).toBe(stream);
      for (const other of [0, id + 2, id + 32]) expect(streams.get(other)).toBeUndefined();
    }),
  );
});
