import { describe, expect, it } from 'vitest';
import { createKeyRing, generateSigningKey } from '../../src/issuer/keys.ts';
import { ManualClock } from '../support/manual-clock.ts';

const [A, B, C] = [
  await generateSigningKey('EdDSA'),
  await generateSigningKey('EdDSA'),
  await generateSigningKey('EdDSA'),
];

const setUp = () => {
  const clock = new ManualClock();
  const keys = createKeyRing(A, clock);
  return { clock, keys, shown: () => keys.jwks().keys.map(({ kid }) => kid) };
};

describe('a key ring', () => {
  it('shows nothing private', () => {
    const { keys } = setUp();
    expect(keys.jwks().keys).toEqual([
      { kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid: A.keyId, alg: 'EdDSA', use: 'sig' },
    ]);
  });

  it('forgets a key that signed nothing as soon as it is replaced', () => {
    const { keys, shown } = setUp();
    keys.rotate(B);
    expect(shown()).toEqual([B.keyId]);
  });

  it('keeps a key for the longest life that it signed, and a minute for clocks that differ', async () => {
    const { clock, keys, shown } = setUp();
    keys.keyFor(300);
    keys.keyFor(10);
    keys.rotate(B);
    await clock.advance(359_999);
    expect(shown()).toEqual([B.keyId, A.keyId]);
    await clock.advance(1);
    expect(shown()).toEqual([B.keyId]);
  });

  it('keeps several', () => {
    const { keys, shown } = setUp();
    keys.keyFor(300);
    keys.rotate(B);
    keys.keyFor(300);
    keys.rotate(C);
    expect(shown()).toEqual([C.keyId, B.keyId, A.keyId]);
  });

  it('shows a key that is rotated back to once', () => {
    const { keys, shown } = setUp();
    keys.keyFor(300);
    keys.rotate(B);
    keys.keyFor(300);
    keys.rotate(A);
    expect(shown()).toEqual([A.keyId, B.keyId]);
    keys.rotate(A);
    expect(shown()).toEqual([A.keyId, B.keyId]);
  });

  it('does not lose a key to a wall clock that is stepped forward', () => {
    const { clock, keys, shown } = setUp();
    keys.keyFor(300);
    keys.rotate(B);
    clock.stepWall(3_600_000);
    expect(shown()).toEqual([B.keyId, A.keyId]);
  });

  it('shows published keys besides, each once, and names those that would be lost', () => {
    const { keys, shown } = setUp();
    keys.keyFor(300);
    keys.publish([B, A]);
    expect(shown()).toEqual([A.keyId, B.keyId]);
    keys.rotate(B);
    expect(shown()).toEqual([B.keyId, A.keyId]);
    expect(keys.lostAtEnd()).toEqual([]);
    keys.publish([C]);
    expect(shown()).toEqual([B.keyId, C.keyId, A.keyId]);
    expect(keys.lostAtEnd()).toEqual([A]);
  });
});
