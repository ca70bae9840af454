import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReplayBuffer } from '../../../src/proxy/transaction/replayable-body.ts';

describe('a replay buffer', () => {
  it('holds everything up to its limit and nothing beyond', () => {
    const slices = fc.array(fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)));
    fc.assert(
      fc.property(slices, fc.nat({ max: 32 }), (added, maxBytes) => {
        const buffer = new ReplayBuffer(maxBytes);
        for (const slice of added) buffer.add(slice);
        const whole = Buffer.concat(added);
        // An empty slice more is no byte more.
        expect(buffer.whole).toBe(whole.byteLength <= maxBytes);
        expect(Buffer.concat(buffer.slices)).toEqual(buffer.whole ? whole : Buffer.alloc(0));
      }),
    );
  });

  it.each([
    ['pieces smaller than a block', [10, 16_384, 3, 40_000]],
    ['more than a block at once', [65_536]],
    ['exactly a block', [16_384, 16_384]],
    ['small pieces', [4096, 4096, 1]],
  ])('holds %s in order, independently of another buffer', (_, lengths) => {
    const bytesOf = (seed: number): Buffer[] =>
      lengths.map((length, at) => Buffer.alloc(length, String.fromCharCode(seed + at)));
    const [mine, others] = [bytesOf(65), bytesOf(97)];
    const [one, other] = [new ReplayBuffer(1e6), new ReplayBuffer(1e6)];
    for (const at of lengths.keys()) {
      one.add(mine[at] as Buffer);
      other.add(others[at] as Buffer);
    }
    expect(Buffer.concat(one.slices).equals(Buffer.concat(mine))).toBe(true);
    one.release();
    new ReplayBuffer(1e6).add(Buffer.alloc(100_000, 'x'));
    expect(Buffer.concat(other.slices).equals(Buffer.concat(others))).toBe(true);
  });

  it('returns its memory once even if released twice', () => {
    const first = new ReplayBuffer(1e6);
    first.add(Buffer.alloc(20_000, 'a'));
    first.release();
    first.release();
    const [one, other] = [new ReplayBuffer(1e6), new ReplayBuffer(1e6)];
    one.add(Buffer.alloc(20_000, 'b'));
    other.add(Buffer.alloc(20_000, 'c'));
    expect(Buffer.concat(one.slices).toString()).toBe('b'.repeat(20_000));
  });

  it('keeps a copy of its input', () => {
    const buffer = new ReplayBuffer(10);
    const slice = Buffer.from('kept');
    buffer.add(slice);
    slice.fill('x');
    expect(Buffer.concat(buffer.slices).toString()).toBe('kept');
  });

  it('that was released keeps nothing more', () => {
    const buffer = new ReplayBuffer(10);
    buffer.add(Buffer.from('a'));
    buffer.release();
    buffer.add(Buffer.from('b'));
    expect(buffer.whole).toBe(false);
    expect(buffer.slices).toEqual([]);
  });
});
