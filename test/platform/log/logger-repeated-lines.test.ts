import { expect, it } from 'vitest';
import { createLogger } from '../../../src/platform/log/logger.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const FAILED = 'request not completed';

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
  const log = createLogger('debug', destination, clock);
  const fail = (error: string, reason: string): void => log.warn({ route: 'r', error, reason }, FAILED);
  return { lines, losses, clock, log, fail, end: () => end(), told: () => lines.splice(0) };
}

it('of warnings of one cause the first is printed, reminders with counts, and the end', async () => {
  const { told, losses, clock, fail } = setUp();
  for (let second = 0; second < 600; second++) {
    fail('upstream_unreachable', 'refused');
    await clock.advance(1000);
  }
  expect(told()).toMatchObject([
    { level: 'warn', route: 'r', error: 'upstream_unreachable', reason: 'refused', msg: FAILED },
    { level: 'warn', reason: 'refused', failures: 61, lastedMs: 60_000, msg: FAILED },
    { level: 'warn', reason: 'refused', failures: 301, lastedMs: 300_000, msg: FAILED },
  ]);
  expect(losses.repeated).toBe(597);
  await clock.advance(60_000);
  const [end, ...more] = told();
  expect(end).toEqual({
    level: 'info',
    time: expect.any(String),
    route: 'r',
    error: 'upstream_unreachable',
    failures: 600,
    lastedMs: 599_000,
    msg: `${FAILED}: no more of these for a minute`,
  });
  expect(more).toEqual([]);
  expect(clock.pendingTimers).toBe(0);
  fail('upstream_unreachable', 'refused');
  await clock.advance(600_000);
  const [first, ...noMore] = told();
  expect(first).not.toHaveProperty('failures');
  expect(noMore).toEqual([]);
});

it('other causes of the same error are printed, ten in a window', () => {
  const { lines, losses, fail } = setUp();
  for (let n = 0; n < 5000; n++) fail('upstream_unreachable', `port ${n}`);
  expect(lines.map(({ reason }) => reason)).toEqual(Array.from({ length: 10 }, (_, n) => `port ${n}`));
  expect(lines[9]).toMatchObject({ failures: 10 });
  expect(losses.repeated).toBe(4990);
});

it('the count of one incident comes before the first line of the next of the same route', () => {
  const { told, log, fail } = setUp();
  for (let n = 0; n < 100; n++) fail('token_unavailable', 'no token');
  log.warn({ route: 'other', error: 'upstream_timeout' }, FAILED);
  expect(told()).toHaveLength(2);
  fail('upstream_timeout', 'no answer');
  expect(told()).toMatchObject([
    { level: 'warn', route: 'r', error: 'token_unavailable', failures: 100, msg: `${FAILED}: more of these` },
    { level: 'warn', route: 'r', error: 'upstream_timeout', reason: 'no answer' },
  ]);
});

it('two causes in turn do not bring each other back', () => {
  const { lines, fail } = setUp();
  for (let n = 0; n < 100; n++) fail(n % 2 === 0 ? 'upstream_timeout' : 'upstream_unreachable', 'x');
  expect(lines).toHaveLength(2);
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
  flood(() => log.warn({ route: 'b', error: 'x' }, 'n'));
  flood(() => log.error({ route: 'b', error: 'x' }, 'n'));
  flood(() => log.child({ credential: 'c' }).warn({ route: 'b', error: 'x' }, 'n'));
  flood(() => log.warn('m'));
  expect(lines).toHaveLength(6);
});

it('information is not limited: it is told as it happens', () => {
  const { lines, log } = setUp();
  for (let n = 0; n < 50; n++) log.info({ credential: 'c' }, 'token obtained');
  for (let n = 0; n < 50; n++) log.debug('detail');
  expect(lines).toHaveLength(100);
});

it('kinds without end are bounded, and so is what is kept of them', async () => {
  const { lines, losses, clock, log, told } = setUp();
  for (let n = 0; n < 20_000; n++) log.warn({ client: `c${n}` }, 'token request refused');
  expect(lines.length).toBeLessThan(300);
  expect(lines.length + losses.repeated).toBe(20_000);
  expect(clock.pendingTimers).toBeLessThan(300);
  told();
  await clock.advance(60_000);
  expect(clock.pendingTimers).toBe(0);
  const [end, ...more] = told();
  expect(end).toMatchObject({
    failures: 19_744,
    msg: 'token request refused: no more of these for a minute',
  });
  expect(end).not.toHaveProperty('client');
  expect(more).toEqual([]);
});

it('of kinds beyond the bound, each statement has its own first line', () => {
  const { log, told } = setUp();
  for (let n = 0; n < 300; n++) log.warn({ client: `c${n}` }, 'token request refused');
  told();
  log.error({ route: 'r' }, 'a request failed');
  expect(told()).toMatchObject([{ level: 'error', route: 'r', msg: 'a request failed' }]);
});

it('an error of another cause has a line of its own', () => {
  const { log, told } = setUp();
  for (const code of ['ECONNREFUSED', 'CERT_HAS_EXPIRED', 'ECONNREFUSED']) {
    log.warn({ err: new Error('fetch failed', { cause: new Error(code) }) }, 'spans are not taken');
  }
  log.warn({ err: Object.create(null) }, 'spans are not taken');
  expect(told()).toHaveLength(3);
});

it('a program that ends says how many it held back until then, and says it once', async () => {
  const { lines, clock, log, end } = setUp();
  for (let n = 0; n < 100; n++) log.warn({ route: 'r' }, FAILED);
  log.warn({ route: 's' }, FAILED);
  end();
  expect(lines).toHaveLength(3);
  expect(lines[2]).toMatchObject({ level: 'warn', route: 'r', failures: 100 });
  end();
  await clock.advance(20_000);
  expect(lines).toHaveLength(3);
});
