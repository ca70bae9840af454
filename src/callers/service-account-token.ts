/**
 * Verifies a projected service account token by itself: signature, issuer, audience, time, and its claims on pod and
 * service account. Only the API server knows whether the pod still lives: see `token-reviews.ts`.
 */

import {
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose';
import * as v from 'valibot';
import type { Instant } from '../platform/time/clock.ts';
import type { RefusedProof, ServiceAccountCaller } from './caller.ts';
import type { ClusterKeys, KeySet, NewestKeys } from './cluster-keys.ts';

type TokenReading =
  | { readonly kind: 'verified'; readonly claims: ServiceAccountClaims }
  | { readonly kind: 'refused'; readonly reason: RefusedProof }
  /** The key is not a known one, and newer ones cannot be read now. */
  | { readonly kind: 'keys_unavailable'; readonly retryAfterMs: number };

export interface ServiceAccountClaims {
  readonly caller: ServiceAccountCaller;
  readonly expiresAt: Instant;
}

/** The API server's tokens have 1 to 2 KiB. */
const MAX_LENGTH = 8192;

/** The algorithms that API servers sign with (`--service-account-signing-key-file`, KEP-740). All are asymmetric. */
const ALGORITHMS = ['RS256', 'ES256', 'ES384', 'ES512'];

/** Between the API server's clock and ours; a token's expiry gets none. */
const CLOCK_TOLERANCE_SECONDS = 30;

const PREFIX = 'system:serviceaccount:';

const named = v.object({ name: v.pipe(v.string(), v.nonEmpty()), uid: v.pipe(v.string(), v.nonEmpty()) });
const clusterClaims = v.object({
  sub: v.string(),
  exp: v.number(),
  aud: v.union([v.string(), v.array(v.string())]),
  'kubernetes.io': v.object({
    namespace: v.pipe(v.string(), v.nonEmpty()),
    serviceaccount: named,
    pod: v.optional(named),
  }),
});

/**
 * Never throws for the token's content.
 * @param audience the only one allowed: a receiver of a token with several could show it to the others.
 */
export async function verifyServiceAccountToken(
  token: string,
  { keys, audience, now }: { readonly keys: ClusterKeys; readonly audience: string; readonly now: Instant },
): Promise<TokenReading> {
  if (token.length > MAX_LENGTH || !isCanonical(token)) return { kind: 'refused', reason: 'malformed' };
  try {
    const known = keys.current() ?? (await newest(keys)).set;
    return understand(await verifiedPayload(token, { known, keys, audience, now }), audience, now);
  } catch (error) {
    if (error instanceof KeysUnavailable) {
      return { kind: 'keys_unavailable', retryAfterMs: error.retryAfterMs };
    }
    return { kind: 'refused', reason: reasonOf(error) };
  }
}

/**
 * Base64url has one text for octets (RFC 7515 §2), but decoders accept others: with padding, blanks, or unused bits.
 * Tokens are remembered by their text, so each variant would cost a review.
 */
function isCanonical(token: string): boolean {
  const parts = token.split('.', 4);
  return (
    parts.length === 3 && parts.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
  );
}

interface Verification {
  readonly known: KeySet;
  readonly keys: ClusterKeys;
  readonly audience: string;
  readonly now: Instant;
}

async function verifiedPayload(
  token: string,
  { known, keys, audience, now }: Verification,
): Promise<JWTPayload> {
  const options = {
    algorithms: ALGORITHMS,
    audience,
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
    currentDate: new Date(now.wallMs),
    requiredClaims: ['iss', 'sub', 'aud', 'exp', 'iat'],
  };
  try {
    return (await jwtVerify(token, known.find, { ...options, issuer: known.issuer })).payload;
  } catch (error) {
    if (!isOfUnknownKey(error, token, known)) throw error;
    return await payloadByNewest(token, keys, options);
  }
}

async function payloadByNewest(
  token: string,
  keys: ClusterKeys,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  const { set, nextInMs } = await newest(keys);
  try {
    return (await jwtVerify(token, set.find, { ...options, issuer: set.issuer })).payload;
  } catch (error) {
    if (nextInMs === undefined || !isOfUnknownKey(error, token, set)) throw error;
    throw new KeysUnavailable(nextInMs);
  }
}

/** The cluster may have changed its keys. A token of a foreign issuer, or without a key id, is no reason to look. */
function isOfUnknownKey(error: unknown, token: string, { issuer }: KeySet): boolean {
  if (!(error instanceof errors.JWKSNoMatchingKey)) return false;
  return typeof decodeProtectedHeader(token).kid === 'string' && decodeJwt(token).iss === issuer;
}

class KeysUnavailable extends Error {
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number) {
    super('the keys of the cluster cannot be had now');
    this.retryAfterMs = retryAfterMs;
  }
}

type ReadKeys = Extract<NewestKeys, { kind: 'read' }>;

/** @throws {KeysUnavailable} */
async function newest(keys: ClusterKeys): Promise<ReadKeys> {
  const outcome = await keys.newest();
  if (outcome.kind === 'unavailable') throw new KeysUnavailable(outcome.retryAfterMs);
  return outcome;
}

function understand(payload: JWTPayload, audience: string, now: Instant): TokenReading {
  const parsed = v.safeParse(clusterClaims, payload);
  if (!parsed.success) return { kind: 'refused', reason: 'claims' };
  const { sub, exp, aud, 'kubernetes.io': cluster } = parsed.output;
  const { namespace, serviceaccount, pod } = cluster;
  if ([aud].flat().some((one) => one !== audience)) return { kind: 'refused', reason: 'audience' };
  if (sub !== `${PREFIX}${namespace}:${serviceaccount.name}`) return { kind: 'refused', reason: 'claims' };
  const leftMs = exp * 1000 - now.wallMs;
  if (!(leftMs > 0)) return { kind: 'refused', reason: 'expired' };
  return {
    kind: 'verified',
    claims: {
      caller: {
        kind: 'service_account',
        namespace,
        serviceAccount: serviceaccount.name,
        ...(pod === undefined ? {} : { pod: { name: pod.name, uid: pod.uid } }),
      },
      expiresAt: { monotonicMs: now.monotonicMs + leftMs, wallMs: exp * 1000 },
    },
  };
}

/** @throws errors that are not jose's verdict on the token. */
function reasonOf(error: unknown): RefusedProof {
  if (error instanceof errors.JWTExpired) return 'expired';
  if (error instanceof errors.JWTClaimValidationFailed) {
    switch (error.claim) {
      case 'iss':
        return 'issuer';
      case 'aud':
        return 'audience';
      case 'nbf':
        return 'not_yet_valid';
      default:
        return 'claims';
    }
  }
  if (
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys
  )
    return 'signature';
  if (error instanceof errors.JOSEError) return 'malformed';
  // jose's decoders report a faulty header or payload by these.
  if (error instanceof TypeError || error instanceof SyntaxError) return 'malformed';
  throw error;
}
