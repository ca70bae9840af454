import fc from 'fast-check';
import { decodeJwt } from 'jose';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { ProofMaker } from '../../../src/token/dpop/proof-maker.ts';

const MAX_ORIGINS = 256;

function nonceOf(proofs: ProofMaker, origin: string): unknown {
  return decodeJwt(proofs.prove(proofs.keyOf(undefined), { method: 'GET', origin, path: '/' }))['nonce'];
}

it('in long random sequences, a proof has the last nonce of its origin, and none of another', () => {
  const step = fc.record({ origin: fc.nat(5), nonce: fc.option(fc.stringMatching(/^[!#-[\]-~]{1,20}$/)) });
  fc.assert(
    fc.property(fc.array(step, { minLength: 200, maxLength: 400 }), (steps) => {
      const proofs = new ProofMaker(systemClock);
      const plain = new Map<string, string>();
      for (const { origin: number, nonce } of steps) {
        const origin = `https://${number}.test`;
        if (nonce === null) expect(nonceOf(proofs, origin)).toBe(plain.get(origin));
        else {
          proofs.nonceGiven(origin, nonce);
          plain.set(origin, nonce);
        }
      }
    }),
    { numRuns: 20 },
  );
});

it('nonces of 256 origins are kept, those used longest ago go first', () => {
  const proofs = new ProofMaker(systemClock);
  const originOf = (number: number): string => `https://${number}.test`;
  for (let number = 0; number < MAX_ORIGINS; number++) proofs.nonceGiven(originOf(number), `n${number}`);
  nonceOf(proofs, originOf(0));
  proofs.nonceGiven('https://another.test', 'n');
  expect(nonceOf(proofs, originOf(0))).toBe('n0');
  expect(nonceOf(proofs, originOf(1))).toBeUndefined();
});
