/** Which proofs are remembered: long sequences of any clients, keys and pauses, beside a list that is searched anew each time. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MAX_USED_PROOFS, UsedProofs } from '../../src/issuer/used-proofs.ts';

const LIFETIME_MS = 70_000;

interface Entry {
  readonly client: string;
  readonly key: string;
  readonly atMs: number;
}

/** The same rules, without a thought for time and memory. */
class PlainUsedProofs {
  #entries: readonly Entry[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  use(client: string, thumbprint: string, tokenId: string, nowMs: number) {
    this.#entries = this.#entries.filter(({ atMs }) => nowMs - atMs <= LIFETIME_MS);
    const key = JSON.stringify([thumbprint, tokenId]);
    if (this.#entries.some((entry) => entry.key === key)) return 'used_before';
    const count = (name: string) => this.#entries.filter((entry) => entry.client === name).length;
    if (this.#entries.length === this.#max) {
      const most = Math.max(...this.#entries.map((entry) => count(entry.client)));
      if (most <= count(client) + 1) return 'full';
      // Among clients with as many, which one gives way is left open.
      const fullest = [...new Set(this.#entries.map((entry) => entry.client))].filter(
        (name) => count(name) === most,
      );
      expect(fullest).toHaveLength(1);
      const oldest = this.#entries.find((entry) => entry.client === fullest[0]);
      this.#entries = this.#entries.filter((entry) => entry !== oldest);
    }
    this.#entries = [...this.#entries, { client, key, atMs: nowMs }];
    return 'used_now';
  }
}

const step = fc.record({
  // Two, so that never two clients have the most when another comes.
  client: fc.constantFrom('a', 'a', 'a', 'b'),
  thumbprint: fc.constantFrom('k', 'l'),
  tokenId: fc.nat({ max: 40 }).map(String),
  pauseMs: fc.oneof(fc.constantFrom(0, 1, LIFETIME_MS, LIFETIME_MS + 1), fc.nat({ max: 9000 })),
});

it('is what a plain list says, within the bound', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 100, maxLength: 400 }),
      fc.integer({ min: 2, max: 16 }),
      (steps, max) => {
        const proofs = new UsedProofs(LIFETIME_MS, max);
        const plain = new PlainUsedProofs(max);
        let nowMs = 0;
        for (const { client, thumbprint, tokenId, pauseMs } of steps) {
          nowMs += pauseMs;
          const outcome = proofs.use(client, thumbprint, tokenId, nowMs);
          expect(outcome).toBe(plain.use(client, thumbprint, tokenId, nowMs));
          expect(proofs.size).toBeLessThanOrEqual(max);
          seen.add(outcome);
        }
      },
    ),
    { numRuns: 150 },
  );
  expect([...seen].sort()).toEqual(['full', 'used_before', 'used_now']);
});

it('a client that floods is refused, and takes no place of a client with fewer', () => {
  const proofs = new UsedProofs(LIFETIME_MS);
  for (let index = 0; index < 100; index++) expect(proofs.use('shop', 'k', `${index}`, 0)).toBe('used_now');
  const outcomes = Array.from({ length: MAX_USED_PROOFS }, (_, index) =>
    proofs.use('bad', 'l', `${index}`, 1),
  );
  expect(outcomes.indexOf('full')).toBe(MAX_USED_PROOFS - 100);
  for (let index = 100; index < 200; index++) expect(proofs.use('shop', 'k', `${index}`, 2)).toBe('used_now');
  for (let index = 0; index < 200; index++) {
    expect(proofs.use('shop', 'k', `${index}`, LIFETIME_MS)).toBe('used_before');
  }
  expect(proofs.size).toBe(MAX_USED_PROOFS);
  expect(proofs.use('bad', 'l', 'again', LIFETIME_MS + 2)).toBe('used_now');
  expect(proofs.size).toBe(101);
});
