import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReplayBuffer } from '../../../src/proxy/exchange/replay-buffer.ts';

describe('a replay buffer', () => {
  it('holds everything up to its limit, and nothing beyond', () => {
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

  it('keeps a copy: the bytes may be overwritten', () => {
    const buffer = new ReplayBuffer(10);
    const slice = Buffer.from('kept');
    buffer.add(slice);
    slice.fill('x');
    expect(Buffer.concat(buffer.slices).toString()).toBe('kept');
  });

  it('that has let go keeps nothing more', () => {
    const buffer = new ReplayBuffer(10);
    buffer.add(Buffer.from('a'));
    buffer.release();
    buffer.add(Buffer.from('b'));
    expect(buffer.whole).toBe(false);
    expect(buffer.slices).toEqual([]);
  });
});
