/**
 * Verifies a token by itself. Only the API server knows whether its pod still lives: see `service-account-verifier.ts`.
 */

import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose';
import * as v from 'valibot';
import type { KubernetesApi } from '../platform/kubernetes/api.ts';
import type { Logger } from '../platform/log/logger.ts';
import { type BackoffOptions, backoffMs, sleep } from '../platform/time/async.ts';
import { elapsedMs, type Instant } from '../platform/time/clock.ts';
import type { RejectedProof, ServiceAccountCaller } from './caller.ts';

type TokenResult =
  | { readonly kind: 'verified'; readonly claims: ServiceAccountClaims }
  | { readonly kind: 'refused'; readonly reason: RejectedProof }
  | { readonly kind: 'keys_unavailable'; readonly retryAfterMs: number };

export interface ServiceAccountClaims {
  readonly caller: ServiceAccountCaller;
  readonly expiresAt: Instant;
}

/** Real tokens have 1 to 2 KiB. */
const MAX_LENGTH = 8192;

/** API servers sign with these (KEP-740). All are asymmetric. */
const ALGORITHMS = ['RS256', 'ES256', 'ES384', 'ES512'];

/** Between clocks. A token's expiry gets none. */
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

/** @param audience the only one allowed: receivers of a token with several could show it to each other. */
export async function verifyServiceAccountToken(
  token: string,
  { keys, audience, now }: { readonly keys: ClusterKeys; readonly audience: string; readonly now: Instant },
): Promise<TokenResult> {
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
 * Decoders accept several texts for the same octets. Tokens are remembered by text, so each would cost a review (RFC
 * 7515 §2).
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

/** Then the cluster may have changed its keys. */
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

function understand(payload: JWTPayload, audience: string, now: Instant): TokenResult {
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
function reasonOf(error: unknown): RejectedProof {
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
  // jose's decoders throw these for a faulty header or payload.
  if (error instanceof TypeError || error instanceof SyntaxError) return 'malformed';
  throw error;
}

interface KeySet {
  readonly issuer: string;
  readonly find: JWTVerifyGetKey;
}

type NewestKeys =
  | {
      readonly kind: 'read';
      readonly set: KeySet;
      /** Set if the reading began before this request: a newer one may have the key. */
      readonly nextInMs?: number;
    }
  /** They cannot be read, or were read a moment ago. */
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number };

interface ClusterKeys {
  /** The last reading stays while the API server is away. */
  current(): KeySet | undefined;
  newest(): Promise<NewestKeys>;
  close(): void;
}

interface ClusterKeysOptions extends BackoffOptions {
  readonly log: Logger;
}

/** A removed key may stay in use for so long. */
const READ_INTERVAL_MS = 300_000;

/** For tokens with unknown keys. */
const MIN_READ_INTERVAL_MS = 10_000;

const TIMEOUT_MS = 5000;

const ASK_SOON_MS = 1000;

const discovery = v.object({ issuer: v.pipe(v.string(), v.nonEmpty()) });

/** Symmetric keys do not belong there. */
const keys = v.object({
  keys: v.pipe(
    v.array(v.looseObject({ kty: v.string(), kid: v.optional(v.string()) })),
    v.maxLength(100),
    v.transform((all) =>
      all.filter(({ kty, kid }) => ['RSA', 'EC'].includes(kty) && kid !== undefined && kid !== ''),
    ),
    v.minLength(1),
  ),
});

/** Otherwise any key that fits would be tried. */
function findByName(set: JSONWebKeySet): JWTVerifyGetKey {
  const find = createLocalJWKSet(set);
  return async (header, jws) => {
    if (typeof header.kid !== 'string') throw new errors.JWKSNoMatchingKey();
    return await find(header, jws);
  };
}

/** By discovery from the API server itself (KEP-1393): `jwks_uri` may lead to a bucket that this pod cannot reach. */
export function watchClusterKeys(api: KubernetesApi, options: ClusterKeysOptions): ClusterKeys {
  const { clock, random, log } = options;
  const abort = new AbortController();
  let current: KeySet | undefined;
  let known = '';
  let last: { readonly at: Instant; readonly succeeded: boolean } | undefined;
  let reading: Promise<boolean> | undefined;

  function read(): Promise<boolean> {
    reading ??= readOnce().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  async function readOnce(): Promise<boolean> {
    const at = clock.now();
    try {
      const [document, set] = await Promise.all([
        api.request('GET', '/.well-known/openid-configuration', { timeoutMs: TIMEOUT_MS }),
        api.request('GET', '/openid/v1/jwks', {
          timeoutMs: TIMEOUT_MS,
          accept: 'application/jwk-set+json, application/json',
        }),
      ]);
      const { issuer } = v.parse(discovery, document);
      const valid = v.parse(keys, set) as JSONWebKeySet;
      const read = JSON.stringify([issuer, valid]);
      if (read !== known) {
        current = { issuer, find: findByName(valid) };
        known = read;
        log.info({ issuer, keys: valid.keys.length }, "the cluster's keys are loaded");
      }
      last = { at, succeeded: true };
      return true;
    } catch (error) {
      log.warn({ err: error }, "the cluster's keys cannot be read, the last ones stay");
      // Counted from the reading's end, since it may have taken the full timeout.
      last = { at: clock.now(), succeeded: false };
      return false;
    }
  }

  async function run(): Promise<void> {
    for (let failures = 0; !abort.signal.aborted; ) {
      failures = (await read()) ? 0 : failures + 1;
      // Everybody waits for the first keys; later ones keep to the schedule.
      const delayMs =
        failures === 0 ? READ_INTERVAL_MS : backoffMs(current === undefined ? 1 : failures, random);
      await sleep(clock, delayMs, abort.signal);
    }
  }

  function sinceLastMs(): number {
    return last === undefined ? MIN_READ_INTERVAL_MS : elapsedMs(last.at, clock.now());
  }

  void run();
  return {
    current: () => current,
    async newest() {
      const sinceMs = sinceLastMs();
      if (last?.succeeded === true && sinceMs < MIN_READ_INTERVAL_MS) {
        return { kind: 'unavailable', retryAfterMs: MIN_READ_INTERVAL_MS - sinceMs };
      }
      const hasBegun = reading !== undefined;
      const succeeded = sinceMs >= MIN_READ_INTERVAL_MS && (await read());
      if (!succeeded || current === undefined) return { kind: 'unavailable', retryAfterMs: ASK_SOON_MS };
      const nextInMs = Math.max(ASK_SOON_MS, MIN_READ_INTERVAL_MS - sinceLastMs());
      return { kind: 'read', set: current, ...(hasBegun ? { nextInMs } : {}) };
    },
    close: () => abort.abort(),
  };
}
