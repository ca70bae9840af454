import { describe, expect, it } from 'vitest';
import { createAuthority, LeafCertificates } from '../../../src/proxy/tls/interception-ca.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const LEAF_MS = 24 * 3_600_000;

const MAX_LEAVES = 128;

const HOUR_MS = 3_600_000;

function leaves() {
  const clock = new ManualClock();
  const authority = createAuthority({ names: ['*.example.com'], nowMs: clock.now().wallMs });
  let issued = 0;
  const counting = {
    ...authority,
    issue: (name: string, nowMs: number) => {
      issued++;
      return authority.issue(name, nowMs);
    },
  };
  return { clock, contexts: new LeafCertificates(counting, clock), issued: () => issued };
}

describe('certificates for intercepted hosts', () => {
  it('are made once for each name', () => {
    const { contexts, issued } = leaves();
    const first = contexts.contextFor('a.example.com');
    expect(contexts.contextFor('a.example.com')).toBe(first);
    expect(contexts.contextFor('b.example.com')).not.toBe(first);
    expect(issued()).toBe(2);
  });

  it('are replaced when a third of their validity is left', async () => {
    const { clock, contexts, issued } = leaves();
    const first = contexts.contextFor('a.example.com');
    await clock.advance((LEAF_MS * 2) / 3 - 1);
    expect(contexts.contextFor('a.example.com')).toBe(first);
    await clock.advance(1);
    expect(contexts.contextFor('a.example.com')).not.toBe(first);
    expect(issued()).toBe(2);
  });

  it('are made anew if the clock was set back to before their start', () => {
    const { clock, contexts, issued } = leaves();
    clock.stepWall(HOUR_MS);
    const first = contexts.contextFor('a.example.com');
    clock.stepWall(-HOUR_MS);
    const second = contexts.contextFor('a.example.com');
    expect(second).not.toBe(first);
    expect(contexts.contextFor('a.example.com')).toBe(second);
    clock.stepWall(HOUR_MS);
    expect(contexts.contextFor('a.example.com')).toBe(second);
    expect(issued()).toBe(2);
  });

  it('are limited in number: the least recently used is evicted', () => {
    const { contexts, issued } = leaves();
    const first = contexts.contextFor('kept.example.com');
    for (let number = 0; number < MAX_LEAVES; number++) {
      contexts.contextFor(`n${number}.example.com`);
      expect(contexts.contextFor('kept.example.com')).toBe(first);
    }
    expect(contexts.size).toBe(MAX_LEAVES);
    expect(issued()).toBe(MAX_LEAVES + 1);
    contexts.contextFor('n0.example.com');
    expect(issued()).toBe(MAX_LEAVES + 2);
  });
});
