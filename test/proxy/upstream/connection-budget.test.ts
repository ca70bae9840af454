import { expect, it } from 'vitest';
import {
  type IdleHolder,
  OpenUpstreams,
  reusableForMs,
} from '../../../src/proxy/upstream/connection-budget.ts';

/** A pool of so many idle connections, oldest first; says which it closed. */
function pool(name: string, idle: number, closed: string[]): IdleHolder {
  let next = 1;
  return {
    closeOldestIdle() {
      if (next > idle) return false;
      closed.push(`${name}${next++}`);
      return true;
    },
  };
}

it('no idle connection is closed while there is room for more', () => {
  const closed: string[] = [];
  const all = new OpenUpstreams(2);
  all.add(pool('a', 2, closed));
  all.opened();
  all.opened();
  expect(closed).toEqual([]);
  all.closed();
  all.opened();
  expect(closed).toEqual([]);
});

it('each connection over the limit closes one idle connection, of the pools in turn', () => {
  const closed: string[] = [];
  const all = new OpenUpstreams(1);
  for (const name of ['a', 'b', 'c']) all.add(pool(name, 2, closed));
  all.opened();
  for (let more = 0; more < 4; more++) all.opened();
  expect(closed).toEqual(['a1', 'b1', 'c1', 'a2']);
});

it('a pool without idle connections is skipped', () => {
  const closed: string[] = [];
  const all = new OpenUpstreams(0);
  all.add(pool('a', 0, closed));
  all.add(pool('b', 3, closed));
  for (let more = 0; more < 5; more++) all.opened();
  expect(closed).toEqual(['b1', 'b2', 'b3']);
});

it('a closed pool is not asked to make room any more', () => {
  const closed: string[] = [];
  const all = new OpenUpstreams(0);
  const gone = pool('a', 3, closed);
  all.add(gone);
  all.add(pool('b', 3, closed));
  all.remove(gone);
  all.opened();
  all.opened();
  expect(closed).toEqual(['b1', 'b2']);
});

it('a waiting pool is told once when a connection was closed or became idle', async () => {
  const all = new OpenUpstreams(1);
  const told: string[] = [];
  all.opened();
  all.tellOfRoom(() => told.push('a'));
  all.tellOfRoom(() => told.push('b'));
  all.idled();
  all.closed();
  // Not amid what the pool that closed it is doing.
  expect(told).toEqual([]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual(['a', 'b']);
  all.closed();
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual(['a', 'b']);
});

it.each([
  ['nothing', [], 55_000],
  ['a short time', ['Keep-Alive', 'timeout=5'], 4_000],
  ['a short time, with a maximum', ['keep-alive', 'timeout=5, max=100'], 4_000],
  ['a short time, last', ['keep-alive', 'max=100, timeout=5'], 4_000],
  ['a long time', ['Keep-Alive', 'timeout=600'], 55_000],
  ['a second', ['Keep-Alive', 'timeout=1'], 500],
  ['no time at all', ['Keep-Alive', 'timeout=0'], 0],
  ['something else', ['Keep-Alive', 'max=5'], 55_000],
  ['nonsense', ['Keep-Alive', 'timeout=soon, xtimeout=5'], 55_000],
])('an idle connection is reused for a time that depends on the answer, which says %s', (_, fields, ms) => {
  expect(reusableForMs(fields)).toBe(ms);
});
