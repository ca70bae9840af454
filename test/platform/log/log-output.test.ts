import { expect, it } from 'vitest';
import { LogOutput } from '../../../src/platform/log/output.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { garbageCollector } from '../../support/collect-garbage.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** Takes what it is told to: a number of bytes, or an error. */
class ScriptedTarget {
  room: number | NodeJS.ErrnoException = Number.POSITIVE_INFINITY;
  text = '';
  tries = 0;

  write(bytes: Uint8Array): number {
    this.tries += 1;
    if (this.room instanceof Error) throw this.room;
    const taken = Math.min(this.room, bytes.length);
    this.room -= taken;
    this.text += Buffer.from(bytes.subarray(0, taken)).toString();
    return taken;
  }
}

function setUp() {
  const target = new ScriptedTarget();
  const clock = new ManualClock();
  return { target, clock, output: new LogOutput(target, clock) };
}

const systemError = (code: string) => Object.assign(new Error(code), { code });
const LINE = `${'x'.repeat(1023)}\n`;

it('a line goes out at once while the output flows', () => {
  const { target, clock, output } = setUp();
  output.write('one\n');
  expect([target.text, clock.pendingTimers]).toEqual(['one\n', 0]);
});

it('a line that was taken in part is finished before the next', async () => {
  const { target, clock, output } = setUp();
  target.room = 2;
  output.write('one\n');
  output.write('two\n');
  target.room = Number.POSITIVE_INFINITY;
  await clock.advance(1000);
  expect([target.text, clock.pendingTimers]).toEqual(['one\ntwo\n', 0]);
});

it('what a stalled output keeps is bounded, and says how many lines were left out once it flows', async () => {
  const { target, clock, output } = setUp();
  target.room = 0;
  for (let line = 0; line < 1000; line++) output.write(LINE);
  expect(output.losses.output).toBe(1000 - 256);
  const { tries } = target;
  expect(tries).toBe(1);
  target.room = Number.POSITIVE_INFINITY;
  await clock.advance(1000);
  output.write('after\n');
  const lines = target.text.split('\n');
  expect(lines.slice(0, 256).every((line) => `${line}\n` === LINE)).toBe(true);
  expect(JSON.parse(lines[256] as string)).toMatchObject({
    level: 'warn',
    lines: 744,
    why: 'the reader was too slow',
    msg: 'log lines were left out',
  });
  expect(lines.slice(257)).toEqual(['after', '']);
});

it('of 16 MiB that nobody reads, less than one stays in memory', () => {
  const collect = garbageCollector();
  const used = (): number => {
    // Buffers are let go once those who held them have been.
    for (let round = 0; round < 3; round++) collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const { target, output } = setUp();
  target.room = 0;
  const before = used();
  for (let line = 0; line < 16 * 1024; line++) output.write(LINE);
  expect(used() - before).toBeLessThan(2 ** 20);
  expect(output.losses.output).toBeGreaterThan(16_000);
});

it('lines that wait hold their own memory alone, whatever small buffers come and go between them', () => {
  const collect = garbageCollector();
  const used = (): number => {
    for (let round = 0; round < 3; round++) collect();
    return process.memoryUsage().arrayBuffers;
  };
  const { target, output } = setUp();
  target.room = 0;
  const before = used();
  for (let line = 0; line < 1000; line++) {
    output.write(`${'x'.repeat(99)}\n`);
    for (let other = 0; other < 20; other++) Buffer.from('y'.repeat(1000));
  }
  expect(output.losses.output).toBe(0);
  expect(used() - before).toBeLessThan(2 ** 19);
});

it('lines stay in their order: none overtakes the note of those left out before it', async () => {
  const { target, clock, output } = setUp();
  target.room = 0;
  for (let line = 0; line < 300; line++) output.write(LINE);
  target.room = LINE.length * 10;
  await clock.advance(30);
  output.write('too early\n');
  target.room = Number.POSITIVE_INFINITY;
  await clock.advance(2000);
  output.write('in time\n');
  expect(target.text).not.toContain('too early');
  expect(target.text).toMatch(/"lines":45.*\nin time\n$/);
  expect(output.losses.output).toBe(45);
});

it.each(['EPIPE', 'ENOSPC', 'EIO'])('%s is survived, and named once lines flow again', async (code) => {
  const { target, clock, output } = setUp();
  target.room = systemError(code);
  for (let line = 0; line < 300; line++) output.write(LINE);
  await clock.advance(60_000);
  expect(target.tries).toBeLessThan(70);
  target.room = Number.POSITIVE_INFINITY;
  await clock.advance(1000);
  expect(target.text).toContain(`"lines":44,"why":"${code}"`);
});

it('flushing waits for a slow reader, up to its bound', () => {
  let beforeReading = 3;
  let text = '';
  const slow = {
    write(bytes: Uint8Array): number {
      if (beforeReading-- > 0) return 0;
      text += Buffer.from(bytes).toString();
      return bytes.length;
    },
  };
  const output = new LogOutput(slow, systemClock);
  output.write('last words\n');
  output.flush(10_000);
  expect(text).toBe('last words\n');

  const stuck = new LogOutput({ write: () => 0 }, systemClock);
  stuck.write('never read\n');
  stuck.flush(20);
});

it('flushing does not wait where nobody reads', () => {
  const { target, output } = setUp();
  target.room = systemError('EPIPE');
  output.write('one\n');
  output.flush(1_000_000);
  expect(target.tries).toBe(2);
});

it('a line that is too long is left out, counted, and told of', () => {
  const { target, output } = setUp();
  output.write(`${'x'.repeat(10_000_000)}\n`);
  output.write('after\n');
  expect(target.text.length).toBeLessThan(200);
  expect(target.text).toMatch(
    /"level":"warn",.*"bytes":10000001,"msg":"a log line was too long"\}\nafter\n$/,
  );
  expect(output.losses.output).toBe(1);
});

it('what is known only at the end is written once, before the last line has gone', () => {
  const { target, output } = setUp();
  output.beforeEnd(() => output.write('last\n'));
  output.flush(0);
  output.flush(0);
  expect(target.text).toBe('last\n');
});
