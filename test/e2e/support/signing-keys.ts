import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, type JWK } from 'jose';

export const SIGNING_KEYS = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
} as const satisfies Readonly<Record<string, () => { readonly privateKey: KeyObject }>>;

export type SigningAlgorithm = keyof typeof SIGNING_KEYS;

export interface SigningKey {
  readonly algorithm: SigningAlgorithm;
  /** PEM. */
  readonly privateKey: string;
  /** As the provider knows it, by its thumbprint (RFC 7638). */
  readonly jwk: JWK;
}

export async function signingKey(algorithm: SigningAlgorithm): Promise<SigningKey> {
  const { privateKey, publicKey } = SIGNING_KEYS[algorithm]();
  const own = await exportJWK(publicKey);
  return {
    algorithm,
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    jwk: { ...own, kid: await calculateJwkThumbprint(own), alg: algorithm, use: 'sig' },
  };
}
