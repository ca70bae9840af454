import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DynamicTable } from '../../../../src/proxy/http2/hpack/dynamic-table.ts';

function contents(table: DynamicTable): string[] {
  return Array.from({ length: table.entries }, (_, index) => `${table.name(index)}=${table.value(index)}`);
}

test('in the HPACK table the newest entry comes first and the oldest is evicted', () => {
  const table = new DynamicTable(34 * 2);
  table.add('a', '1');
  table.add('b', '2');
  expect(contents(table)).toEqual(['b=2', 'a=1']);
  table.add('c', '3');
  expect(contents(table)).toEqual(['c=3', 'b=2']);
  expect(table.bytes).toBe(68);
});

test('an HPACK entry larger than the table empties it', () => {
  const table = new DynamicTable(40);
  table.add('a', '1');
  table.add('b', '123456789');
  expect(contents(table)).toEqual([]);
  expect(table.bytes).toBe(0);
});

test('the HPACK table behaves like a list that is cut at its end', () => {
  const step = fc.oneof(
    fc.tuple(fc.constantFrom('add'), fc.string({ maxLength: 40 })),
    fc.tuple(fc.constantFrom('resize'), fc.integer({ min: 0, max: 3000 })),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const table = new DynamicTable(2000);
      let model: string[] = [];
      let max = 2000;
      for (const [kind, value] of steps) {
        if (kind === 'add') {
          table.add('n', value as string);
          model.unshift(`n=${value}`);
        } else {
          max = value as number;
          table.resize(max);
        }
        let bytes = 0;
        model = model.filter((entry) => {
          bytes += entry.length - 1 + 32;
          return bytes <= max;
        });
        expect(contents(table)).toEqual(model);
      }
      expect(table.maxBytes).toBe(max);
    }),
  );
});
