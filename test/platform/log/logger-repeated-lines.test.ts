import { expect, it } from 'vitest';
import { createLogger } from '../../../src/platform/log/logger.ts';
import { ManualClock } from '../../support/manual-clock.ts';

function setUp() {
  const lines: Record<string, unknown>[] = [];
  const losses = { output: 0, repeated: 0 };
  const clock = new ManualClock();
  let end: () => void = () => undefined;
  const destination = {
    losses,
    write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>),
    beforeEnd(write: () => void) {
      end = write;
    },
  };
  return { lines, losses, clock, log: createLogger('debug', destination, clock), end: () => end() };
}

it('of warnings of one kind the first ten are printed, and how many followed', async () => {
  const { lines, losses, clock, log } = setUp();
  for (let n = 0; n < 5000; n++) {
    log.warn({ route: 'r', error: 'upstream_unreachable', reason: `port ${n}` }, 'request not completed');
  }
  expect([lines.length, losses.repeated]).toEqual([10, 4990]);
  await clock.advance(10_000);
  expect(lines[10]).toMatchObject({
    level: 'warn',
    route: 'r',
    error: 'upstream_unreachable',
    leftOut: 4990,
    withinMs: 10_000,
    msg: 'request not completed: more of the same were left out',
  });
  expect(lines[10]).not.toHaveProperty('reason');
  log.warn({ route: 'r', error: 'upstream_unreachable' }, 'request not completed');
  expect(lines).toHaveLength(12);
});

it('one caller that is refused all the time leaves room for the lines of another', () => {
  const { log, lines } = setUp();
  for (let n = 0; n < 50; n++) log.warn({ entry: 'noisy', error: 'too_many_requests' }, 'caller refused');
  log.warn({ entry: 'quiet', error: 'too_many_requests' }, 'caller refused');
  expect(lines.at(-1)).toMatchObject({ entry: 'quiet' });
});

it('another route, error, text, level or credential is another kind', () => {
  const { lines, log } = setUp();
  const flood = (write: () => void) => {
    for (let n = 0; n < 20; n++) write();
  };
  flood(() => log.warn({ route: 'a', error: 'x' }, 'm'));
  flood(() => log.warn({ route: 'b', error: 'x' }, 'm'));
  flood(() => log.warn({ route: 'a', error: 'y' }, 'm'));
  flood(() => log.warn({ route: 'a', error: 'x' }, 'n'));
  flood(() => log.error({ route: 'a', error: 'x' }, 'm'));
  flood(() => log.child({ credential: 'c' }).warn({ route: 'a', error: 'x' }, 'm'));
  flood(() => log.warn('m'));
  expect(lines).toHaveLength(70);
});

it('information is not limited: it is told as it happens', () => {
  const { lines, log } = setUp();
  for (let n = 0; n < 50; n++) log.info({ credential: 'c' }, 'token obtained');
  for (let n = 0; n < 50; n++) log.debug('detail');
  expect(lines).toHaveLength(100);
});

it('kinds without end are bounded, and so is what is kept of them', async () => {
  const { lines, losses, clock, log } = setUp();
  for (let n = 0; n < 20_000; n++) log.warn({ client: `c${n}` }, 'token request refused');
  expect(lines.length).toBeLessThan(300);
  expect(lines.length + losses.repeated).toBe(20_000);
  expect(clock.pendingTimers).toBeLessThan(300);
  await clock.advance(10_000);
  expect(clock.pendingTimers).toBe(0);
  expect(lines.at(-1)).toMatchObject({ leftOut: 19_734, msg: 'more lines of many kinds were left out' });
  expect(lines.at(-1)).not.toHaveProperty('client');
});

it('a program that ends says how many it held back until then, and says it once', async () => {
  const { lines, clock, log, end } = setUp();
  for (let n = 0; n < 100; n++) log.warn({ route: 'r' }, 'request not completed');
  log.warn({ route: 's' }, 'request not completed');
  end();
  expect(lines).toHaveLength(12);
  expect(lines[11]).toMatchObject({ route: 'r', leftOut: 90 });
  await clock.advance(20_000);
  expect(lines).toHaveLength(12);
});
