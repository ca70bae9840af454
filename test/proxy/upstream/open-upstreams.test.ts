import { expect, it } from 'vitest';
import { type IdleHolder, OpenUpstreams } from '../../../src/proxy/upstream/open-upstreams.ts';

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

it('nothing idle is closed while there is room', () => {
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

it('each connection beyond the most closes one idle one, of the pools in turn', () => {
  const closed: string[] = [];
  const all = new OpenUpstreams(1);
  for (const name of ['a', 'b', 'c']) all.add(pool(name, 2, closed));
  all.opened();
  for (let more = 0; more < 4; more++) all.opened();
  expect(closed).toEqual(['a1', 'b1', 'c1', 'a2']);
});

it('a pool that has none idle is passed by', () => {
  const closed: string[] = [];
  const all = new OpenUpstreams(0);
  all.add(pool('a', 0, closed));
  all.add(pool('b', 3, closed));
  for (let more = 0; more < 5; more++) all.opened();
  expect(closed).toEqual(['b1', 'b2', 'b3']);
});

it('a pool that is out of use is not asked any more', () => {
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

it('who was turned away is told, once, when a connection has closed or become idle', async () => {
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
