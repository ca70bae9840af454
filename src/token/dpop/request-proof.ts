/** The proof that goes with a bound token (RFC 9449 §7), and what the upstream says of it. */

import type { BoundToken } from '../bearer-source.ts';
import { nonceIn } from './proof-maker.ts';

interface Upstream {
  readonly protocol: 'http' | 'https';
  /** The value of the Host field. */
  readonly authority: string;
}

interface Answer {
  readonly status: number;
  /** Values of the field `DPoP-Nonce`. */
  readonly nonces: readonly string[];
  /** Values of the field `WWW-Authenticate`. */
  readonly challenges: readonly string[];
}

/**
 * - `nonce_wanted`: the request may be sent again, with the nonce that the answer gave.
 * - `none`: the answer says nothing of the proof.
 */
type ProofVerdict = 'nonce_wanted' | RefusedProof | 'none';

/**
 * Another token would not help.
 * - `nonce_refused`: the nonce is not right, and the request is not sent again with another.
 */
export type RefusedProof = 'proof_refused' | 'nonce_refused';

export class RequestProof {
  readonly #origin: string;
  /** The one that the upstream gave for this request. It may be good only once, so no other request gets it meanwhile. */
  #nonce: string | undefined;

  constructor(upstream: Upstream) {
    this.#origin = originOf(upstream);
  }

  /** @param target as it is sent. */
  make(token: BoundToken, method: string, target: string): string {
    const path = target === '*' ? '/' : target.replace(/[?#].*$/s, '');
    return token.prove({ method, origin: this.#origin, path }, this.#nonce);
  }

  /**
   * Takes the nonce of the answer.
   * @param mayRepeat the request can be sent again.
   */
  judge(token: BoundToken, { status, nonces, challenges }: Answer, mayRepeat: boolean): ProofVerdict {
    const given = nonces.length === 1 ? nonceIn(nonces[0]) : undefined;
    const error = status === 401 ? errorIn(challenges) : undefined;
    if (error === 'use_dpop_nonce' && given !== undefined && this.#nonce === undefined && mayRepeat) {
      this.#nonce = given;
      token.told('nonce_wanted');
      return 'nonce_wanted';
    }
    const nonce = given ?? this.#nonce;
    if (nonce !== undefined) token.nonceGiven(this.#origin, nonce);
    if (this.#nonce !== undefined) this.#nonce = nonce;
    if (error !== 'use_dpop_nonce' && error !== 'invalid_dpop_proof') return 'none';
    token.told('refused');
    return error === 'use_dpop_nonce' ? 'nonce_refused' : 'proof_refused';
  }
}

/** Characters. The search takes time by the square of it. */
const MAX_CHALLENGE = 2048;

/** Of the scheme `DPoP` (RFC 9449 §7.1). */
function errorIn(challenges: readonly string[]): string | undefined {
  for (const challenge of challenges) {
    const read = challenge.slice(0, MAX_CHALLENGE);
    const [, error] = /(?:^|,)\s*DPoP\s(?:.*?[\s,])??error\s*=\s*"?([a-z_]+)/is.exec(read) ?? [];
    if (error !== undefined) return error;
  }
  return undefined;
}

/** RFC 3986 §6.2.2.1 and §6.2.3. The path stays as it is sent: some servers compare it letter by letter. */
function originOf({ protocol, authority }: Upstream): string {
  const usual = protocol === 'https' ? ':443' : ':80';
  const host = authority.endsWith(usual) ? authority.slice(0, -usual.length) : authority;
  return `${protocol}://${host.toLowerCase()}`;
}
