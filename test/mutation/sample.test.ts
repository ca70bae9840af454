import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { evenPart } from '../../mutation/even-part.ts';
import { strykerPlugins } from '../../mutation/plugins/seeded-order.ts';

const MUTANTS = Array.from({ length: 40 }, (_, i) => ({ id: String(i) }));

async function chosen(seed: string, sample?: number): Promise<readonly string[]> {
  vi.stubEnv('MUTATION_SEED', seed);
  vi.stubEnv('MUTATION_SAMPLE', sample === undefined ? undefined : String(sample));
  const [plugin] = strykerPlugins;
  const checker = new (plugin as NonNullable<typeof plugin>).injectableClass();
  const groups = await checker.group(MUTANTS);
  const passed: string[] = [];
  for (const group of groups) {
    const checks = await checker.check(MUTANTS.filter(({ id }) => group.includes(id)));
    expect(Object.keys(checks).sort()).toEqual(group.toSorted());
    passed.push(...Object.keys(checks).filter((id) => checks[id]?.status === 'passed'));
  }
  expect(groups.flat().toSorted()).toEqual(MUTANTS.map(({ id }) => id).toSorted());
  return passed;
}

beforeEach(() => vi.unstubAllEnvs());
afterEach(() => vi.unstubAllEnvs());

it('takes all mutants when no sample is asked for, in an order of the seed', async () => {
  const order = await chosen('1');
  expect(order).toHaveLength(40);
  expect(await chosen('1')).toEqual(order);
  expect(await chosen('2')).not.toEqual(order);
});

it('a smaller sample is the beginning of a larger one', async () => {
  expect(await chosen('1', 10)).toEqual((await chosen('1')).slice(0, 10));
});

it('a part holds of the mutants that no test reaches as many as the whole: they are all known at once', async () => {
  const order = await chosen('1');
  const measured = new Set(order.slice(0, 12).filter((_, i) => i % 3 !== 1));
  const reported = MUTANTS.flatMap(({ id }) => {
    const place = order.indexOf(id);
    const status = place % 3 === 1 ? 'NoCoverage' : measured.has(id) ? 'Killed' : undefined;
    const location = { start: { line: 1, column: 1 }, end: { line: 1, column: 2 } };
    return status === undefined ? [] : [{ id, status, location, fileName: 'a.ts', mutatorName: 'm' }];
  });
  expect(reported).toHaveLength(8 + 13);
  expect(evenPart(reported, '1').map(({ id }) => id)).toEqual(order.slice(0, 12));
});

it('a part in which no test was run is empty', () => {
  const location = { start: { line: 1, column: 1 }, end: { line: 1, column: 2 } };
  const untested = { id: '1', status: 'NoCoverage', location, fileName: 'a.ts', mutatorName: 'm' };
  expect(evenPart([untested], '1')).toEqual([]);
});
