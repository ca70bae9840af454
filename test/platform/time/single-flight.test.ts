import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SingleFlight } from '../../../src/platform/time/async.ts';

const step = fc.oneof(
  fc.record({ do: fc.constant('ask' as const), key: fc.constantFrom('a', 'b', 'c') }),
  fc.record({ do: fc.constant('end' as const), which: fc.nat(9), fails: fc.boolean() }),
);

interface Begun {
  readonly key: string;
  readonly work: PromiseWithResolvers<number>;
}

it('work with the same key is begun once at a time, and all who asked meanwhile have its outcome', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 200, maxLength: 300 }), async (steps) => {
      const flights = new SingleFlight<number>();
      const begun: Begun[] = [];
      /** By number of the work that was under way when each asked. */
      const expected: string[] = [];
      const outcomes: Promise<string>[] = [];
      const underWay = new Map<string, number>();
      for (const step of steps) {
        if (step.do === 'ask') {
          const { key } = step;
          const before = begun.length;
          const number = underWay.get(key) ?? before;
          underWay.set(key, number);
          expected.push(String(number));
          expect(flights.get(key) !== undefined).toBe(number < before);
          const flight = flights.run(key, () => {
            const work = Promise.withResolvers<number>();
            begun.push({ key, work });
            return work.promise;
          });
          outcomes.push(flight.then(String, ({ message }: Error) => message));
          expect(begun.length).toBe(number === before ? before + 1 : before);
        } else {
          const open = [...underWay.values()];
          const number = open[step.which % Math.max(1, open.length)];
          if (number === undefined) continue;
          const { key, work } = begun[number] as Begun;
          if (step.fails) work.reject(new Error(String(number)));
          else work.resolve(number);
          underWay.delete(key);
          await work.promise.catch(() => undefined);
          await Promise.resolve();
        }
        for (const key of ['a', 'b', 'c']) expect(flights.get(key) !== undefined).toBe(underWay.has(key));
      }
      for (const number of underWay.values()) begun[number]?.work.resolve(number);
      expect(await Promise.all(outcomes)).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});
