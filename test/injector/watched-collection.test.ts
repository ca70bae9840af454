import { expect, it, onTestFinished } from 'vitest';
import { watchCollection } from '../../src/platform/kubernetes/collection-watch.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { scriptedKubernetes } from './scripted-kubernetes.ts';

const named = (name: string) => ({ metadata: { name, resourceVersion: '2' } });

function watchThings(...pages: { readonly continue?: string; readonly items: readonly object[] }[]) {
  const clock = new ManualClock();
  const { api, asked, streams } = scriptedKubernetes(() => {
    const { items, continue: next } =
      pages.length > 1 ? (pages.shift() as never) : (pages[0] as (typeof pages)[0]);
    return { metadata: { resourceVersion: '1', ...(next === undefined ? {} : { continue: next }) }, items };
  });
  const told: string[] = [];
  const options = { clock, random: () => 0.5, log: captureLog().log };
  const end = watchCollection(api, '/things', { limit: 2 }, options, {
    begun: () => void told.push('begun'),
    seen: ({ metadata: { name } }, isNew) => void told.push(`${isNew ? 'new ' : ''}${name}`),
    gone: ({ metadata: { name } }) => void told.push(`gone ${name}`),
    listed: () => void told.push('listed'),
  });
  onTestFinished(end);
  return { clock, asked, streams, end, told: () => told.splice(0) };
}

it('an object is new when it was made while it was watched: not when it was listed, nor when it changes', async () => {
  const { clock, streams, told } = watchThings({ items: [named('a')] });
  await clock.advance(0);
  expect(told()).toEqual(['begun', 'a', 'listed']);
  for (const [type, name] of [
    ['ADDED', 'b'],
    ['MODIFIED', 'b'],
    ['BOOKMARK', 'c'],
    ['DELETED', 'a'],
  ] as const) {
    streams[0]?.send({ type, object: named(name) });
  }
  expect(told()).toEqual(['new b', 'b', 'gone a']);
});

it('is listed page by page before it is watched, and reported as a whole', async () => {
  const { clock, asked, streams, told } = watchThings(
    { continue: 'x', items: [named('a'), named('b')] },
    { items: [named('c')] },
  );
  await clock.advance(0);
  expect(told()).toEqual(['begun', 'a', 'b', 'c', 'listed']);
  expect(asked.map(({ query }) => query)).toEqual([{ limit: 2 }, { limit: 2, continue: 'x' }]);
  expect(streams[0]?.query).toEqual({ resourceVersion: '1', allowWatchBookmarks: true });
});

it('reports nothing after its end', async () => {
  const { clock, streams, told, end } = watchThings({ items: [] });
  await clock.advance(0);
  told();
  end();
  streams[0]?.send({ type: 'ADDED', object: named('late') });
  expect(told()).toEqual([]);
});

it.each([
  ['has forgotten where it was', 410],
  ['did not know the collection for a moment', 404],
])('begins anew when the server %s', async (_, code) => {
  const { clock, streams, told } = watchThings({ items: [named('a')] });
  await clock.advance(2000);
  told();
  streams[0]?.send({ type: 'ERROR', object: { code, message: 'too old' } });
  streams[0]?.end();
  await clock.advance(1000);
  expect(told()).toEqual(['begun', 'a', 'listed']);
});
