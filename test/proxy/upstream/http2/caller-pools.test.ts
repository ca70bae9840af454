import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CallerPools } from '../../../../src/proxy/upstream/http2/caller-pools.ts';
import type { Http2Pool } from '../../../../src/proxy/upstream/http2/pool.ts';
import { volume } from '../../../support/volume.ts';

/** Pools without a network, and what was asked of each. */
function start() {
  const made: { inUse: boolean; told: string[] }[] = [];
  const pools = new CallerPools(() => {
    const told: string[] = [];
    const pool = {
      inUse: true,
      told,
      discardIdle: () => told.push('discard'),
      drain: () => told.push('drain'),
      renew: () => told.push('renew'),
      close: () => told.push('close'),
    };
    made.push(pool);
    return pool as unknown as Http2Pool;
  });
  return { pools, made, told: () => made.map(({ told }) => told.splice(0).join()) };
}

it('a caller keeps its pool and can discard its idle connections alone', () => {
  const { pools, told } = start();
  const own = pools.of('a');
  expect(pools.of('b')).not.toBe(own);
  expect(pools.of('a')).toBe(own);
  pools.discardIdle('a');
  pools.discardIdle('unknown');
  expect(told()).toEqual(['discard', '']);
});

it('changes to all pools reach each, and those of later callers', () => {
  const { pools, told } = start();
  pools.of('a');
  pools.of('b');
  pools.renew();
  pools.drain();
  pools.of('c');
  expect(told()).toEqual(['renew,drain', 'renew,drain', 'drain']);
  pools.close();
  pools.of('d');
  expect(told()).toEqual(['close', 'close', 'close', 'close']);
});

it('unused pools of callers are retired, so that their number stays small', () => {
  const { pools, made, told } = start();
  const first = pools.of('stays');
  for (let caller = 0; caller < 1000; caller++) {
    pools.of(`caller ${caller}`);
    const last = made.at(-1);
    if (last !== undefined) last.inUse = false;
    expect(pools.size).toBeLessThanOrEqual(16);
  }
  expect(pools.of('stays')).toBe(first);
  expect(told()[0]).toBe('');
  expect(made.filter(({ inUse }) => !inUse)).toHaveLength(1000);
});

it('as many pools are kept as are in use', () => {
  const { pools } = start();
  for (let caller = 0; caller < 100; caller++) pools.of(`caller ${caller}`);
  expect(pools.size).toBe(100);
});

it('in long random sequences a caller keeps its pool while it is used, and no two callers share one', () => {
  const step = fc.record({ caller: fc.integer({ min: 0, max: 60 }), isUsedUp: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { minLength: 200, maxLength: 400 }), (steps) => {
      const { pools, made } = start();
      /** What each caller had last, and by whom each pool was had. */
      const last = new Map<number, Http2Pool>();
      const owners = new Map<Http2Pool, number>();
      let mostInUse = 0;
      const isInUse = (pool: Http2Pool): boolean => pool.inUse;
      for (const { caller, isUsedUp } of steps) {
        const before = last.get(caller);
        const pool = pools.of(caller === 0 ? undefined : String(caller));
        if (before !== undefined && isInUse(before)) expect(pool).toBe(before);
        expect(owners.get(pool) ?? caller).toBe(caller);
        owners.set(pool, caller);
        last.set(caller, pool);
        mostInUse = Math.max(mostInUse, made.filter(({ inUse }) => inUse).length);
        expect(pools.size).toBeLessThanOrEqual(Math.max(16, 2 * mostInUse));
        (pool as unknown as { inUse: boolean }).inUse = !isUsedUp;
      }
    }),
    { numRuns: volume(30, 100) },
  );
});
