import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteQueue } from '../../../src/proxy/io/byte-queue.ts';

/** A copy of what is taken: it is there only while it is read. */
function taken(queue: ByteQueue, most: number): Buffer {
  let copy = Buffer.alloc(0);
  queue.take(most, (octets) => {
    copy = Buffer.from(octets);
  });
  return copy;
}

it('a byte queue returns its bytes in order, in any pieces', () => {
  const added = fc.record({ add: fc.uint8Array({ maxLength: 40_000 }) });
  const asked = fc.record({ take: fc.integer({ min: 1, max: 50_000 }) });
  fc.assert(
    fc.property(fc.array(fc.oneof(added, asked), { maxLength: 30 }), (steps) => {
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
          const got = taken(queue, step.take);
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

it('a byte queue holds thousands of small pieces in few blocks', () => {
  const queue = new ByteQueue();
  for (let piece = 0; piece < 32_000; piece++) queue.add(Buffer.from('x'));
  let takes = 0;
  while (queue.length > 0) {
    taken(queue, 32_000);
    takes++;
  }
  expect(takes).toBeLessThan(5);
});

it('a byte queue forgets what it is asked to', () => {
  const queue = new ByteQueue();
  queue.add(Buffer.from('gone'));
  taken(queue, 1);
  queue.clear();
  queue.add(Buffer.from('there'));
  expect([queue.length, taken(queue, 10).toString()]).toEqual([5, 'there']);
});

describe('the blocks of a byte queue are reused', () => {
  /** Takes whatever block is free, and writes over it. */
  const overwrite = (): void => {
    for (let count = 0; count < 4; count++) new ByteQueue().add(Buffer.alloc(64 * 1024, 'x'));
  };
  const ONE = Buffer.alloc(20_000, 'a');

  it('once they were read', () => {
    const queue = new ByteQueue();
    queue.add(ONE);
    let memory: ArrayBufferLike | undefined;
    queue.take(20_000, (octets) => {
      memory = octets.buffer;
    });
    const other = new ByteQueue();
    other.add(ONE);
    expect(other.pieces()[0]?.buffer).toBe(memory);
  });

  it('but not while they are being read, whatever the reader does', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('take', 'take all', 'clear', 'throw'), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 20_000 }),
        (acts, most) => {
          const queue = new ByteQueue();
          queue.add(ONE);
          const readThen = (octets: Buffer, [act, ...rest]: readonly string[]): void => {
            if (act === 'clear') queue.clear();
            else if (act !== undefined) {
              queue.take(act === 'take' ? 100 : 20_000, (inner) => readThen(inner, rest));
            }
            overwrite();
            expect(octets.every((octet) => octet === 0x61)).toBe(true);
            if (act === 'throw') throw new Error('whoever reads fails');
          };
          try {
            queue.take(most, (octets) => readThen(octets, acts));
          } catch (error) {
            if (!acts.includes('throw')) throw error;
            expect((error as Error).message).toBe('whoever reads fails');
          }
          overwrite();
          expect(Buffer.concat(queue.pieces()).every((octet) => octet === 0x61)).toBe(true);
        },
      ),
    );
  });
});
