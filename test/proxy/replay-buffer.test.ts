import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReplayBuffer } from '../../src/proxy/replay-buffer.ts';

describe('a replay buffer', () => {
  it('holds everything up to its limit, and nothing beyond', () => {
    const chunks = fc.array(fc.uint8Array({ maxLength: 8 }));
    fc.assert(
      fc.property(chunks, fc.nat({ max: 32 }), (added, maxBytes) => {
        const buffer = new ReplayBuffer(maxBytes);
        for (const chunk of added) buffer.add(chunk);
        const whole = Buffer.concat(added);
        // An empty chunk more is no byte more.
        expect(buffer.whole).toBe(whole.byteLength <= maxBytes);
        expect(Buffer.concat(buffer.chunks)).toEqual(buffer.whole ? whole : Buffer.alloc(0));
      }),
    );
  });

  it('that has let go keeps nothing more', () => {
    const buffer = new ReplayBuffer(10);
    buffer.add(Buffer.from('a'));
    buffer.release();
    buffer.add(Buffer.from('b'));
    expect(buffer.whole).toBe(false);
    expect(buffer.chunks).toEqual([]);
  });
});
