import { systemClock } from '../../src/platform/time/clock.ts';
import type { Authorization, BearerSource, TokenProvider } from '../../src/token/bearer-source.ts';
import { ProofMaker } from '../../src/token/dpop/proof-maker.ts';
import { TOKEN_MARK } from './fake-bearer.ts';

/** Holds tokens that are bound to a key, one after the other. */
export class BoundBearer implements TokenProvider {
  /** Tokens that were refused. */
  readonly refused: Authorization[] = [];
  readonly #proofs = new ProofMaker(systemClock);
  #held = this.#next();

  forUpstream(): BearerSource {
    return {
      current: () => this.#held,
      obtain: async () => this.#held,
      replace: async (refused) => {
        this.refused.push(refused);
        if (refused === this.#held) this.#held = this.#next();
        return this.#held;
      },
      accepted: () => undefined,
    };
  }

  #next() {
    return this.#proofs.bind(`${TOKEN_MARK}-${this.refused.length}`, this.#proofs.keyOf(undefined));
  }
}
