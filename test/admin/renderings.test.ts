import { expect, it } from 'vitest';
import { Renderings } from '../../src/admin/admin-server.ts';
import { WorkingClock } from './working-clock.ts';

const MAX_REST_MS = 1000;

function setUp() {
  const clock = new WorkingClock();
  const renderings = new Renderings<string>(clock);
  const made: string[] = [];
  /** Takes `ms` to make. */
  function share(name: string, ms: number): Promise<string> {
    return renderings.share(name, () => {
      clock.work(ms);
      made.push(name);
      return `${name} ${made.length}`;
    });
  }
  return { clock, renderings, made, share };
}

it('simultaneous callers of one name share a rendering', async () => {
  const { share } = setUp();
  const asked = [share('page', 0), share('metrics', 0), share('page', 0)];
  expect(await Promise.all(asked)).toEqual(['page 1', 'metrics 2', 'page 1']);
  expect(await share('page', 0)).toBe('page 3');
});

it('renderings are made one after another, and callers meanwhile get the next one', async () => {
  const { renderings } = setUp();
  const first = Promise.withResolvers<string>();
  const begun = Promise.withResolvers<void>();
  const asked = renderings.share('page', () => {
    begun.resolve();
    return first.promise;
  });
  await begun.promise;
  let made = 0;
  const make = () => `later ${++made}`;
  const later = [renderings.share('page', make), renderings.share('metrics', make)];
  expect(made).toBe(0);
  first.resolve('first');
  expect(await asked).toBe('first');
  expect(await Promise.all(later)).toEqual(['later 1', 'later 2']);
});

it('renderings take a twentieth of the time, however many ask', async () => {
  const { clock, made, share } = setUp();
  const askForEver = async (name: string): Promise<void> => {
    while (made.length < 10_000) await share(name, 10);
  };
  for (let n = 0; n < 64; n++) void askForEver(`page ${n % 4}`);
  await clock.advance(60_000);
  // 3 s of the minute: the clock does not count what they take.
  expect(made.length).toBeGreaterThan(290);
  expect(made.length).toBeLessThanOrEqual(60_000 / 190 + 1);
});

it('after a rendering that a stop of the process made long, the next waits for a second', async () => {
  const { clock, made, share } = setUp();
  await share('page', 60_000);
  const next = share('page', 1);
  await clock.advance(MAX_REST_MS - 1);
  expect(made).toHaveLength(1);
  await clock.advance(1);
  expect(await next).toBe('page 2');
});

it('a failed rendering fails for those who share it, and the next is tried anew', async () => {
  const { renderings, share } = setUp();
  const fail = (): string => {
    throw new Error('no');
  };
  const asked = [renderings.share('page', fail), renderings.share('page', fail)];
  for (const each of asked) await expect(each).rejects.toThrow('no');
  expect(await share('page', 1)).toBe('page 1');
});
