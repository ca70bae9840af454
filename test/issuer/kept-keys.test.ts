/** Which keys are shown and would be lost, however often it is rotated. */

import { expect, it } from 'vitest';
import { createKeyRing, generateSigningKey } from '../../src/issuer/keys.ts';
import { ManualClock } from '../support/manual-clock.ts';

const [A, B, C] = await Promise.all([
  generateSigningKey('EdDSA'),
  generateSigningKey('EdDSA'),
  generateSigningKey('EdDSA'),
]);

function ring() {
  const clock = new ManualClock();
  const keys = createKeyRing(A, clock);
  return { clock, keys, shown: () => keys.jwks().keys.map(({ kid }) => kid) };
}

it('a key that is replaced by itself is not lost', () => {
  const { keys } = ring();
  keys.keyFor(300);
  keys.rotate(A);
  expect(keys.current()).toBe(A);
  expect(keys.lostAtEnd()).toEqual([]);
});

it('a key that signs again is kept, and is not named as lost', async () => {
  const { clock, keys, shown } = ring();
  keys.keyFor(300);
  keys.rotate(B);
  keys.keyFor(10);
  keys.rotate(A);
  expect(keys.lostAtEnd()).toEqual([B]);
  keys.rotate(C);
  await clock.advance(70_000);
  expect(shown()).toEqual([C.keyId, A.keyId]);
  expect(keys.lostAtEnd()).toEqual([A]);
});

it('a key whose tokens have expired is not named as lost', async () => {
  const { clock, keys } = ring();
  keys.keyFor(300);
  keys.rotate(B);
  expect(keys.lostAtEnd()).toEqual([A]);
  await clock.advance(360_000);
  expect(keys.lostAtEnd()).toEqual([]);
});

it('a wall clock that is stepped back keeps a key until both clocks have passed its end', async () => {
  const { clock, keys, shown } = ring();
  keys.keyFor(300);
  keys.rotate(B);
  clock.stepWall(-60_000);
  await clock.advance(360_000);
  expect(shown()).toEqual([B.keyId, A.keyId]);
  await clock.advance(60_000);
  expect(shown()).toEqual([B.keyId]);
});
