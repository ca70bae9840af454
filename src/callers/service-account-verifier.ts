/**
 * Verifies a token with the cluster's keys, then by a TokenReview, which is cached. Later reviews find deleted pods.
 * While the API server is away, the last verdict stays for a bounded time.
 */

import { hash } from 'node:crypto';
import * as v from 'valibot';
import { type KubernetesApi, KubernetesApiError } from '../platform/kubernetes/api.ts';
import { FairPlaces, FairQueue, type FairQueueLimits } from '../platform/limits/fair-queue.ts';
import type { Logger } from '../platform/log/logger.ts';
import { type BackoffOptions, doublingMs, SingleFlight, within } from '../platform/time/async.ts';
import { elapsedMs, hasPassed, type Instant, later, remainingMs } from '../platform/time/clock.ts';
import {
  type AuthenticationResult,
  callerKey,
  type RejectedProof,
  type ServiceAccountCaller,
} from './caller.ts';
import type { CallerMetrics } from './metrics.ts';
import {
  type ServiceAccountClaims,
  verifyServiceAccountToken,
  watchClusterKeys,
} from './service-account-token.ts';

interface CachedResult {
  readonly verdict: AuthenticationResult;
  /** Whether `verify` would review it again. */
  readonly isDue: boolean;
}

export interface ServiceAccountVerifier {
  /**
   * Answers within 11 s; rejects only for faults of the program.
   * @param token never logged, and kept only as its SHA-256.
   * @param from the caller's address: where too many wait, the one with most gives way.
   */
  verify(token: string, from: string): Promise<AuthenticationResult>;
  /** Asks nobody; undefined for an unknown token. */
  known(token: string): CachedResult | undefined;
  ready(): boolean;
  close(): void;
}

interface ServiceAccountVerifierOptions extends BackoffOptions {
  readonly audience: string;
  readonly log: Logger;
  readonly metrics: CallerMetrics;
  readonly crowd?: CrowdLimits;
}

interface CrowdLimits {
  /** Requests that wait for a verdict. */
  readonly mostAtOnce: number;
  readonly line: FairQueueLimits;
}

/** Room for two thousand pods. The line also has what those wanted who gave way. */
export const CROWD: CrowdLimits = {
  mostAtOnce: 2000,
  line: { atOnce: 16, mostWaiting: 4000, timeoutMs: 3000 },
};

const REVIEWED_FOR_MS = 60_000;

/** How long a review is trusted if no new one can be had. */
const REVIEWED_AT_MOST_MS = 300_000;

/** How long a token with an older review waits. */
const WAIT_FOR_NEXT_MS = 1000;

const DENIED_FOR_MS = 10_000;

const ASK_SOON: AuthenticationResult = { kind: 'unavailable', retryAfterMs: 1000 };

export function createServiceAccountVerifier(
  api: KubernetesApi,
  options: ServiceAccountVerifierOptions,
): ServiceAccountVerifier {
  const { clock, random, audience, log, metrics, crowd = CROWD } = options;
  const keys = watchClusterKeys(api, options);
  const reviews = createTokenReviews(api, { clock, random, audience, log, metrics, line: crowd.line });
  const known = createKnownTokens(REVIEWED_AT_MOST_MS);
  const underWay = new SingleFlight<AuthenticationResult>();
  /** By address. */
  const places = new FairPlaces(crowd.mostAtOnce);

  async function look(token: string, hash: string): Promise<AuthenticationResult> {
    const reading = await verifyServiceAccountToken(token, { keys, audience, now: clock.now() });
    switch (reading.kind) {
      case 'verified':
        return concluded(hash, reading.claims, await reviews.review(token, reading.claims.caller));
      case 'refused':
        return refused(reading.reason);
      case 'keys_unavailable':
        return { kind: 'unavailable', retryAfterMs: reading.retryAfterMs };
    }
  }

  function concluded(
    hash: string,
    { caller, expiresAt }: ServiceAccountClaims,
    outcome: ReviewOutcome,
  ): AuthenticationResult {
    const now = clock.now();
    switch (outcome.kind) {
      case 'confirmed':
        known.set(hash, { kind: 'confirmed', caller, expiresAt, reviewedAt: now }, now);
        return { kind: 'accepted', caller };
      case 'denied':
        known.set(hash, { kind: 'denied', caller, until: later(now, DENIED_FOR_MS) }, now);
        return { ...refused('revoked'), caller };
      case 'unavailable':
        return { ...outcome, caller };
    }
  }

  async function reviewAgain(
    token: string,
    hash: string,
    before: ConfirmedToken,
  ): Promise<AuthenticationResult> {
    const stays = elapsedMs(before.reviewedAt, clock.now()) < REVIEWED_AT_MOST_MS;
    const next = underWay.run(hash, async () =>
      concluded(hash, before, await reviews.review(token, before.caller)),
    );
    if (!stays) return await next;
    const verdict = await within(WAIT_FOR_NEXT_MS, next, clock);
    if (verdict === 'late') {
      next.catch((error: unknown) => log.error({ err: error }, 'a service account token was not reviewed'));
    } else if (verdict.kind !== 'unavailable') {
      return verdict;
    }
    return { kind: 'accepted', caller: before.caller };
  }

  function recall(hash: string): CachedResult | undefined {
    const before = known.get(hash);
    if (before === undefined) return undefined;
    const now = clock.now();
    if (before.kind === 'denied')
      return hasPassed(before.until, now)
        ? undefined
        : { verdict: { ...refused('revoked'), caller: before.caller }, isDue: false };
    if (hasPassed(before.expiresAt, now)) {
      return { verdict: { ...refused('expired'), caller: before.caller }, isDue: false };
    }
    const ageMs = elapsedMs(before.reviewedAt, now);
    if (ageMs >= REVIEWED_AT_MOST_MS) return undefined;
    return { verdict: { kind: 'accepted', caller: before.caller }, isDue: ageMs >= REVIEWED_FOR_MS };
  }

  async function decide(token: string, from: string): Promise<AuthenticationResult> {
    const hash = hashOf(token);
    const recalled = recall(hash);
    if (recalled?.isDue === false) return recalled.verdict;
    const before = known.get(hash);
    const verdict = await places.during(from, () =>
      before?.kind === 'confirmed'
        ? reviewAgain(token, hash, before)
        : underWay.run(hash, () => look(token, hash)),
    );
    return verdict ?? recalled?.verdict ?? ASK_SOON;
  }

  return {
    async verify(token, from) {
      const verdict = await decide(token, from);
      metrics.verified(verdict);
      return verdict;
    },
    known(token) {
      const recalled = recall(hashOf(token));
      if (recalled?.isDue === false) metrics.verified(recalled.verdict);
      return recalled;
    },
    ready: () => keys.current() !== undefined,
    close: () => keys.close(),
  };
}

function hashOf(token: string): string {
  return hash('sha256', token, 'latin1');
}

function refused(reason: RejectedProof): AuthenticationResult {
  return { kind: 'refused', reason };
}

type KnownToken = ConfirmedToken | DeniedToken;

interface ConfirmedToken {
  readonly kind: 'confirmed';
  readonly caller: ServiceAccountCaller;
  readonly expiresAt: Instant;
  readonly reviewedAt: Instant;
}

interface DeniedToken {
  readonly kind: 'denied';
  readonly caller: ServiceAccountCaller;
  readonly until: Instant;
}

interface TokenCache {
  get(hash: string): KnownToken | undefined;
  /** If there is no room, drops the oldest token of a caller with many, or else the oldest. */
  set(hash: string, token: KnownToken, now: Instant): void;
  delete(hash: string): void;
  readonly size: number;
}

/** A few hundred bytes each. */
const MAX_KNOWN = 20_000;

/**
 * Above it, a caller's tokens make room for others'. A pod needs two for each volume. Holders of tokens without a pod
 * count as one caller.
 */
const KEPT_OF_ONE_CALLER = 8;

/**
 * Remembers tokens by hash.
 * @param usefulForMs after the last review.
 */
export function createKnownTokens(usefulForMs: number): TokenCache {
  const tokens = new Map<string, KnownToken>();
  /** The only token, or all in order. A set of one would double the memory. */
  const ofCallers = new Map<string, string | Set<string>>();
  /** Callers with more than `KEPT_OF_ONE_CALLER`; the longest so comes first. */
  const withMany = new Set<string>();

  function remove(hash: string): void {
    const token = tokens.get(hash);
    if (token === undefined) return;
    tokens.delete(hash);
    const key = callerKey(token.caller);
    const own = ofCallers.get(key);
    if (!(own instanceof Set)) {
      ofCallers.delete(key);
      return;
    }
    own.delete(hash);
    const [first] = own;
    if (own.size === 1) ofCallers.set(key, first as string);
    if (own.size === KEPT_OF_ONE_CALLER) withMany.delete(key);
  }

  function add(hash: string, key: string): void {
    const own = ofCallers.get(key);
    if (own === undefined) {
      ofCallers.set(key, hash);
      return;
    }
    const all = own instanceof Set ? own.add(hash) : new Set([own, hash]);
    ofCallers.set(key, all);
    if (all.size > KEPT_OF_ONE_CALLER) withMany.add(key);
  }

  function isUseful(token: KnownToken, now: Instant): boolean {
    return token.kind === 'confirmed'
      ? elapsedMs(token.reviewedAt, now) < usefulForMs
      : !hasPassed(token.until, now);
  }

  /** Nothing useless follows a useful one, since the order is by age. */
  function forgetUseless(now: Instant): void {
    for (const [hash, token] of tokens) {
      if (isUseful(token, now)) return;
      remove(hash);
    }
  }

  function makeRoomFor(key: string): void {
    const own = ofCallers.get(key);
    const [many] = withMany;
    const giving = own instanceof Set && own.size >= KEPT_OF_ONE_CALLER ? key : many;
    const theirs = giving === undefined ? undefined : ofCallers.get(giving);
    const [oldest] = theirs instanceof Set ? theirs : tokens.keys();
    remove(oldest as string);
  }

  return {
    get: (hash) => tokens.get(hash),
    set(hash, token, now) {
      remove(hash);
      forgetUseless(now);
      const key = callerKey(token.caller);
      if (tokens.size >= MAX_KNOWN) makeRoomFor(key);
      add(hash, key);
      tokens.set(hash, token);
    },
    delete: remove,
    get size() {
      return tokens.size;
    },
  };
}

type ReviewOutcome =
  | { readonly kind: 'confirmed' }
  | { readonly kind: 'denied' }
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number };

interface TokenReviews {
  /** Never rejects; answers within 6 s. */
  review(token: string, caller: ServiceAccountCaller): Promise<ReviewOutcome>;
}

interface TokenReviewsOptions extends BackoffOptions {
  readonly audience: string;
  readonly log: Logger;
  readonly metrics: CallerMetrics;
  readonly line: FairQueueLimits;
}

const TIMEOUT_MS = 3000;

const PAUSE = { firstMs: 100, maxMs: 2000 };

const PATH = '/apis/authentication.k8s.io/v1/tokenreviews';

const answer = v.object({
  status: v.object({
    authenticated: v.optional(v.boolean(), false),
    audiences: v.optional(v.array(v.string()), []),
    user: v.optional(
      v.object({
        username: v.optional(v.string()),
        extra: v.optional(v.record(v.string(), v.array(v.string())), {}),
      }),
    ),
  }),
});
type Status = v.InferOutput<typeof answer>['status'];

/** Reviews take turns by namespace. */
function createTokenReviews(api: KubernetesApi, options: TokenReviewsOptions): TokenReviews {
  const { clock, random, audience, log, metrics } = options;
  const line = new FairQueue(clock, options.line);
  let failures = 0;
  let pausedUntil = clock.now();

  function unavailable(): ReviewOutcome {
    const pauseMs = remainingMs(pausedUntil, clock.now());
    return { kind: 'unavailable', retryAfterMs: Math.max(PAUSE.firstMs, pauseMs) };
  }

  async function ask(token: string, caller: ServiceAccountCaller): Promise<ReviewOutcome> {
    const startedAtMs = clock.monotonicMs();
    try {
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token, audiences: [audience] },
      };
      const { status } = v.parse(answer, await api.request('POST', PATH, { body, timeoutMs: TIMEOUT_MS }));
      failures = 0;
      const kind = confirms(status, caller, audience) ? 'confirmed' : 'denied';
      metrics.reviewed(kind, (clock.monotonicMs() - startedAtMs) / 1000);
      return { kind };
    } catch (error) {
      const growing = doublingMs(failures++, PAUSE);
      const asked = error instanceof KubernetesApiError ? (error.retryAfterMs ?? 0) : 0;
      const pauseMs = Math.min(PAUSE.maxMs, Math.max(asked, growing * (0.5 + 0.5 * random())));
      pausedUntil = later(clock.now(), pauseMs);
      metrics.reviewed('unavailable', (clock.monotonicMs() - startedAtMs) / 1000);
      // A schema's message would quote the answer with the token.
      const err = error instanceof KubernetesApiError ? error : new Error('the answer is no TokenReview');
      log.error({ err, failures }, 'service account tokens cannot be reviewed');
      return unavailable();
    }
  }

  return {
    async review(token, caller) {
      if (!hasPassed(pausedUntil, clock.now())) return unavailable();
      const place = line.enter(caller.namespace);
      if ((await place.turn) !== 'come') {
        metrics.reviewed('queue_full', 0);
        return unavailable();
      }
      try {
        // Earlier reviews may have failed meanwhile.
        if (!hasPassed(pausedUntil, clock.now())) return unavailable();
        return await ask(token, caller);
      } finally {
        place.end();
      }
    },
  };
}

/** Whether the token is confirmed for our audience, and for the caller and pod that it names. */
function confirms(
  { authenticated, audiences, user }: Status,
  { namespace, serviceAccount, pod }: ServiceAccountCaller,
  audience: string,
): boolean {
  if (!authenticated || !audiences.includes(audience)) return false;
  if (user?.username !== `system:serviceaccount:${namespace}:${serviceAccount}`) return false;
  const uids = user.extra['authentication.kubernetes.io/pod-uid'];
  return uids === undefined || (uids.length === 1 && uids[0] === pod?.uid);
}
