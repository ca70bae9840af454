import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ByteQueue } from '../../../src/proxy/streams/byte-queue.ts';

it('gives what was added, in order, however it is added and taken', () => {
  const added = fc.record({ add: fc.uint8Array({ maxLength: 40_000 }) });
  const taken = fc.record({ take: fc.integer({ min: 1, max: 50_000 }) });
  fc.assert(
    fc.property(fc.array(fc.oneof(added, taken), { maxLength: 30 }), (steps) => {
      const queue = new ByteQueue();
      let waiting = Buffer.alloc(0);
      for (const step of steps) {
        if ('add' in step) {
          const octets = Buffer.from(step.add);
          queue.add(octets);
          waiting = Buffer.concat([waiting, octets]);
          // What was read is overwritten by the next read.
          octets.fill(0xee);
        } else {
          expect(Buffer.concat(queue.pieces()).equals(waiting)).toBe(true);
          const first = queue.first();
          const got = queue.take(step.take);
          expect(got.equals(first.subarray(0, step.take))).toBe(true);
          expect(got.length).toBeLessThanOrEqual(step.take);
          if (waiting.length > 0) expect(got.length).toBeGreaterThan(0);
          expect(got.equals(waiting.subarray(0, got.length))).toBe(true);
          waiting = Buffer.from(waiting.subarray(got.length));
        }
        expect(queue.length).toBe(waiting.length);
      }
    }),
    { numRuns: 200 },
  );
});

it('holds thousands of small pieces in few blocks', () => {
  const queue = new ByteQueue();
  for (let piece = 0; piece < 32_000; piece++) queue.add(Buffer.from('x'));
  let takes = 0;
  while (queue.length > 0) {
    queue.take(32_000);
    takes++;
  }
  expect(takes).toBeLessThan(5);
});

it('forgets what it is told to', () => {
  const queue = new ByteQueue();
  queue.add(Buffer.from('gone'));
  queue.take(1);
  queue.clear();
  queue.add(Buffer.from('there'));
  expect([queue.length, queue.take(10).toString()]).toEqual([5, 'there']);
});
