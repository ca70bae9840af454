/** Bound tokens (RFC 9449) as an API sees them: whether their proof is right, and what a stolen one is worth. */

import { createHash } from 'node:crypto';
import { calculateJwkThumbprint, EmbeddedJWK, type JWTPayload, jwtVerify } from 'jose';
import { DPOP_ALGORITHMS } from '../issuer/dpop-proof.ts';
import { UsedProofs } from '../issuer/used-proofs.ts';
import { http } from '../platform/net/node-http.ts';
import type { Clock } from '../platform/time/clock.ts';

export interface ProvedCall {
  readonly method: string | undefined;
  /** Without query. */
  readonly url: string;
  readonly token: string;
  /** Verified, of the token. */
  readonly claims: JWTPayload;
  /** The field `DPoP`. */
  readonly proof: string;
}

/** @returns what is wrong, without anything of the proof. */
export type ProofCheck = (call: ProvedCall) => Promise<string | undefined>;

/** Caller and API have the same clock, which may be set meanwhile. */
const MAX_AGE_SECONDS = 10;
const CLOCK_TOLERANCE_SECONDS = 2;

export function createProofCheck(clock: Clock): ProofCheck {
  // Tolerance applies at both ends.
  const used = new UsedProofs((MAX_AGE_SECONDS + 2 * CLOCK_TOLERANCE_SECONDS) * 1000);

  return async ({ method, url, token, claims, proof }) => {
    const verified = await jwtVerify(proof, EmbeddedJWK, {
      typ: 'dpop+jwt',
      algorithms: DPOP_ALGORITHMS,
      maxTokenAge: MAX_AGE_SECONDS,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
    }).catch(() => undefined);
    if (verified === undefined) return 'its form, signature or time is wrong';
    const { jti, htm, htu, ath } = verified.payload;
    if (htm !== method || htu !== url) return 'it is for another request';
    if (ath !== createHash('sha256').update(token).digest('base64url')) return 'it is for another token';
    // EmbeddedJWK has verified with this very key.
    const thumbprint = await calculateJwkThumbprint(verified.protectedHeader.jwk ?? {});
    if (thumbprint !== thumbprintIn(claims)) return 'it is by another key';
    if (typeof jti !== 'string' || jti === '') return 'it has no jti';
    switch (used.use(String(claims['azp']), thumbprint, jti, clock.now().monotonicMs)) {
      case 'used_before':
        return 'it has been used before';
      case 'full':
        return 'too many came of late';
      case 'used_now':
        return undefined;
    }
  };
}

/** Of the key to which the token is bound (RFC 9449 §6.1). */
export function thumbprintIn(claims: JWTPayload): string | undefined {
  const { jkt } = { ...(claims['cnf'] as { readonly jkt?: unknown } | undefined) };
  return typeof jkt === 'string' ? jkt : undefined;
}

/** @returns the status that it gets. */
export function sendWithoutProof(url: string, token: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const request = http.get(url, { agent: false, headers }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode));
    });
    request.once('error', reject);
  });
}
