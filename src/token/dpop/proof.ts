/** DPoP proofs (RFC 9449 §4.2), and the keys that sign them. */

import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import type { AssertionAlgorithm } from '../../config/config.ts';
import { type AssertionKey, parseAssertionKey, signature, thumbprintOf } from '../client/assertion.ts';

/** Equal keys are equal values. */
export interface ProofKey extends Pick<AssertionKey, 'algorithm' | 'thumbprint' | 'privateKey'> {
  /** Encoded, with the public key and a dot. */
  readonly header: string;
}

const ALGORITHMS: ReadonlySet<AssertionAlgorithm> = new Set(['ES256', 'ES384', 'EdDSA', 'RS256', 'PS256']);

const EXPECTED =
  'an unencrypted private key for dpop.keyFile, in PEM or as a single JWK: EC on P-256 or P-384, Ed25519, or RSA of at least 2048 bits';

/** @returns what was expected, if it is no such key. */
export function parseProofKey(text: string): ProofKey | { readonly expected: string } {
  const key = parseAssertionKey(text);
  return 'expected' in key || !ALGORITHMS.has(key.algorithm) ? { expected: EXPECTED } : proofKey(key);
}

/** A key on P-256 that exists in this process alone. */
export function makeProofKey(): ProofKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return proofKey({ algorithm: 'ES256', thumbprint: thumbprintOf(privateKey), privateKey });
}

function proofKey({ algorithm, thumbprint, privateKey }: Omit<ProofKey, 'header'>): ProofKey {
  const header = { typ: 'dpop+jwt', alg: algorithm, jwk: publicMembers(privateKey) };
  return { algorithm, thumbprint, privateKey, header: `${encoded(header)}.` };
}

/** `createPublicKey` leaves the private members out. */
function publicMembers(privateKey: KeyObject): object {
  return createPublicKey(privateKey).export({ format: 'jwk' });
}

export interface ProofFacts {
  /** Its case counts. */
  readonly method: string;
  /** Without query and fragment. */
  readonly uri: string;
  /** Milliseconds since the Unix epoch, by the provider's clock. */
  readonly nowMs: number;
  /** What the server gave last. */
  readonly nonce?: string | undefined;
  /** `tokenHash` of the token beside the proof; absent at a token endpoint. */
  readonly tokenHash?: string | undefined;
}

const JTI_BYTES = 16;

export function makeProof(key: ProofKey, { method, uri, nowMs, nonce, tokenHash }: ProofFacts): string {
  const claims = {
    jti: randomBytes(JTI_BYTES).toString('base64url'),
    htm: method,
    htu: uri,
    iat: Math.floor(nowMs / 1000),
    ath: tokenHash,
    nonce,
  };
  const input = `${key.header}${encoded(claims)}`;
  return `${input}.${signature(key, Buffer.from(input)).toString('base64url')}`;
}

/** The claim `ath`. */
export function tokenHash(accessToken: string): string {
  return createHash('sha256').update(accessToken).digest('base64url');
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
