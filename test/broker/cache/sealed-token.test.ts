import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deriveKey, MAX_VALUE_LENGTH, nameOf, seal, unseal } from '../../../src/broker/cache/sealed-token.ts';

const key = deriveKey(randomBytes(32));
const name = nameOf(key, 'the grant');
const token = { accessToken: 'a.token', lifetimeMs: 300_000, requestedAtMs: 1_900_000_000_000 };

describe('a sealed token', () => {
  it('opens under its name and with its key', () => {
    expect(unseal(key, name, seal(key, name, token))).toEqual(token);
  });

  it('differs each time', () => {
    const values = Array.from({ length: 50 }, () => seal(key, name, token));
    expect(new Set(values).size).toBe(50);
  });

  it.each(['x', '"', '\\'])('of the longest allowed token fits, also of %s alone', (character) => {
    const longest = {
      ...token,
      accessToken: character.repeat(64 * 1024),
      requestedAtMs: 1_900_000_000_000.123,
    };
    const value = seal(key, name, longest);
    expect(value.length).toBeLessThanOrEqual(MAX_VALUE_LENGTH);
    expect(unseal(key, name, value)).toEqual(longest);
  });

  it('does not open under another name, or with another key', () => {
    const value = seal(key, name, token);
    expect(unseal(key, nameOf(key, 'another grant'), value)).toBeUndefined();
    expect(unseal(deriveKey(randomBytes(32)), name, value)).toBeUndefined();
  });

  it('does not open after any bit has changed, or a part is missing', () => {
    const bytes = Buffer.from(seal(key, name, token), 'base64');
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
        const changed = Buffer.from(bytes);
        changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
        expect(unseal(key, name, changed.toString('base64'))).toBeUndefined();
      }),
    );
    for (let length = 0; length < bytes.length; length++) {
      expect(unseal(key, name, bytes.subarray(0, length).toString('base64'))).toBeUndefined();
    }
  });

  it('does not open if another party wrote it', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String({ maxLength: 400 })), (text) => {
        expect(unseal(key, name, text)).toBeUndefined();
      }),
    );
    expect(unseal(key, name, 'A'.repeat(MAX_VALUE_LENGTH + 4))).toBeUndefined();
  });

  it.each([
    ['a token that no header can carry', { accessToken: 'a token' }],
    ['no token', { accessToken: '' }],
    ['no life', { lifetimeMs: 0 }],
    ['a life without end', { lifetimeMs: Number.POSITIVE_INFINITY }],
    ['a life of centuries', { lifetimeMs: 1e15 }],
    ['no time', { requestedAtMs: Number.NaN }],
  ])('is nothing with %s in it, whoever has the key', (_, wrong) => {
    expect(unseal(key, name, seal(key, name, { ...token, ...wrong }))).toBeUndefined();
  });
});

describe('a name', () => {
  it('is the same for the same grant and key only', () => {
    expect(nameOf(key, 'the grant')).toBe(name);
    expect(nameOf(key, 'the grant.')).not.toBe(name);
    expect(nameOf(deriveKey(randomBytes(32)), 'the grant')).not.toBe(name);
  });

  it('does not use the key that seals values', () => {
    expect(key.naming.equals(key.sealing)).toBe(false);
  });
});
