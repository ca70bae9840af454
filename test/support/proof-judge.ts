/** Judges proofs as RFC 9449 §4.3 says, by node:crypto alone. */

import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';

interface ProvedRequest {
  readonly method: string;
  /** As the server sees it, without query. */
  readonly uri: string;
  /** Names and values, as they came. */
  readonly raw: readonly string[];
}

export interface JudgedProof {
  /** RFC 7638. */
  readonly thumbprint: string;
  readonly nonce: string | undefined;
  /** Undefined without `Authorization: DPoP`, as at a token endpoint. */
  readonly token: string | undefined;
}

interface PublicKey {
  readonly key: KeyObject;
  readonly thumbprint: string;
}

const MEMBERS = { EC: ['crv', 'kty', 'x', 'y'], OKP: ['crv', 'kty', 'x'] };
const DIGESTS: Readonly<Record<string, string | null>> = { ES256: 'sha256', EdDSA: null };

export class ProofJudge {
  readonly #keys = new Map<string, PublicKey>();
  readonly #used = new Set<string>();

  get judged(): number {
    return this.#used.size;
  }

  /** @throws {Error} that says what is wrong. */
  judge({ method, uri, raw }: ProvedRequest): JudgedProof {
    const [authorization, ...others] = values(raw, 'authorization');
    const [, token] = /^DPoP (\S+)$/.exec(authorization ?? '') ?? [];
    const [proof = '', ...further] = values(raw, 'dpop');
    expected('further fields', others.length + further.length, 0);
    const [header = '', claims = '', signature = ''] = proof.split('.');
    const { typ, alg, jwk } = decoded(header);
    const { key, thumbprint } = this.#keyOf(header, jwk);
    const signed = Buffer.from(`${header}.${claims}`);
    const by = { key, dsaEncoding: 'ieee-p1363' as const };
    const { jti, htm, htu, iat, ath, nonce } = decoded(claims);
    const hash = token === undefined ? undefined : createHash('sha256').update(token).digest('base64url');
    expected('typ', typ, 'dpop+jwt');
    expected('signature', verify(DIGESTS[alg], signed, by, Buffer.from(signature, 'base64url')), true);
    expected('htm', htm, method);
    expected('htu', htu, uri);
    expected('ath', ath, hash);
    expected('iat', Math.abs(Date.now() / 1000 - iat) < 5, true);
    expected('use of jti', this.#used.has(jti), false);
    expected('octets of jti', Buffer.from(jti, 'base64url').length, 16);
    this.#used.add(jti);
    return { thumbprint, nonce, token };
  }

  #keyOf(header: string, jwk: Readonly<Record<string, unknown>>): PublicKey {
    const known = this.#keys.get(header);
    if (known !== undefined) return known;
    const members = MEMBERS[jwk['kty'] as keyof typeof MEMBERS];
    expected('members of the key', Object.keys(jwk).toSorted().join(), members.join());
    const canonical = JSON.stringify(jwk, members);
    const thumbprint = createHash('sha256').update(canonical).digest('base64url');
    const made = { key: createPublicKey({ key: jwk, format: 'jwk' }), thumbprint };
    this.#keys.set(header, made);
    return made;
  }
}

function values(raw: readonly string[], name: string): string[] {
  return raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name);
}

function expected(what: string, found: unknown, right: unknown): void {
  if (found !== right) throw new Error(`${what}: ${found}, not ${right}`);
}

function decoded(part: string) {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}
