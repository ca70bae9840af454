import { describe, expect, it } from 'vitest';
import { createDerivationMemory } from '../../src/issuer/caller-verification.ts';
import { hashSecret, parseScryptHash, type ScryptHash } from '../../src/issuer/secret-hashing.ts';

async function hashOf(secret: string): Promise<ScryptHash> {
  return parseScryptHash(await hashSecret(secret, { ln: 1, r: 1, p: 1 })) as ScryptHash;
}
const [A, B] = [await hashOf('a'), await hashOf('a')];

describe('remembered scrypt results', () => {
  it('belong to one hash, though another has the same secret', () => {
    const memory = createDerivationMemory();
    memory.learn(A, 'a', true);
    memory.learn(B, 'x', false);
    expect(memory.recall(A, 'a')).toBe('right');
    expect(memory.recall(B, 'a')).toBe('unknown');
    expect(memory.recall(B, 'x')).toBe('wrong');
    expect(memory.recall(A, 'x')).toBe('unknown');
    expect(memory.recall(undefined, 'a')).toBe('unknown');
  });

  it('are bounded: the wrong secret that was used longest ago goes first', () => {
    const memory = createDerivationMemory(3);
    for (const secret of ['1', '2', '3']) memory.learn(A, secret, false);
    expect(memory.recall(A, '1')).toBe('wrong');
    memory.learn(A, '4', false);
    expect(['1', '2', '3', '4'].map((secret) => memory.recall(A, secret))).toEqual([
      'wrong',
      'unknown',
      'wrong',
      'wrong',
    ]);
    expect(memory.size).toEqual({ right: 0, wrong: 3 });
  });

  it('go with the hash', () => {
    const memory = createDerivationMemory();
    for (const hash of [A, B]) {
      memory.learn(hash, 'a', true);
      memory.learn(hash, 'x', false);
    }
    memory.keepOnly(new Set([B.text]));
    expect(memory.size).toEqual({ right: 1, wrong: 1 });
    expect(memory.recall(A, 'a')).toBe('unknown');
    expect(memory.recall(B, 'a')).toBe('right');
  });
});
