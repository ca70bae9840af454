/** Tokens shared by replicas. If the store fails, each requests its own. */

import { KeyObject } from 'node:crypto';
import type { CredentialConfig } from '../../config/config.ts';
import { sleep } from '../../platform/time/async.ts';
import { type Clock, type Instant, later, remainingMs } from '../../platform/time/clock.ts';
import { mayShareToken } from '../../token/client/client-authentication.ts';
import type { Credentials } from '../../token/credentials.ts';
import { mayShareGranted } from '../../token/grants/grants.ts';
import type { TokenResponse } from '../../token/provider/token-response.ts';
import type { SharedToken, SharedTokens, WantedToken } from '../../token/shared-tokens.ts';
import type { CacheMetrics } from './metrics.ts';
import { type CacheKey, nameOf, seal, unseal } from './sealed-token.ts';
import type { Found, TokenStore } from './token-store.ts';

export interface CacheKeys {
  /** Used to write. */
  readonly current: CacheKey;
  /** Reads values of replicas without the current key. */
  readonly previous?: CacheKey | undefined;
}

interface TokenCache {
  of(config: CredentialConfig): SharedTokens;
}

interface TokenCacheOptions {
  readonly store: TokenStore;
  readonly keys: () => CacheKeys;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: CacheMetrics;
}

/** How long to wait for another replica's grant. */
const MAX_WAIT_MS = 2000;
const LOOK_INTERVAL_MS = 100;
/** Bounds the wait if a requesting replica vanishes. */
const CLAIM_MS = 3000;
/** Near its end, a claim may be another's when given back. */
const CLAIM_MARGIN_MS = 1000;

interface Place {
  readonly key: CacheKey;
  readonly name: string;
}

interface Places {
  readonly current: Place;
  readonly all: readonly Place[];
}

interface Look {
  readonly result: Exclude<Parameters<CacheMetrics['looked']>[0], 'waited'>;
  readonly token?: SharedToken;
}

const TELLING: readonly Look['result'][] = ['hit', 'old', 'invalid', 'miss'];

export function createTokenCache({ store, keys, clock, random, metrics }: TokenCacheOptions): TokenCache {
  async function look({ all }: Places, { judge }: WantedToken): Promise<Look> {
    const askedAt = clock.now();
    const answer = await store.read(all.map(({ name }) => name));
    if (answer.state === 'away') return { result: 'away' };
    const looks = answer.value.map((found, index) => consider(all[index] as Place, found, askedAt, judge));
    const [best] = TELLING.flatMap((result) => looks.filter((one) => one.result === result));
    return best ?? { result: 'miss' };
  }

  function consider({ key, name }: Place, found: Found, askedAt: Instant, judge: WantedToken['judge']): Look {
    if (found.kind === 'nothing') return { result: 'miss' };
    const stored = found.kind === 'value' ? unseal(key, name, found.value) : undefined;
    if (found.kind !== 'value' || stored === undefined) return { result: 'invalid' };
    const { accessToken, lifetimeMs, requestedAtMs } = stored;
    const now = clock.now();
    // By the store's clock or the replicas', whichever leaves less.
    const byStore = remainingMs(later(askedAt, found.leftMs), now);
    const byClocks = requestedAtMs + lifetimeMs - now.wallMs;
    const leftMs = Math.min(byStore, byClocks, lifetimeMs);
    const token: SharedToken = { accessToken, lifetimeMs, ageMs: lifetimeMs - leftMs };
    const judgement = leftMs > 0 ? judge(token) : 'old';
    if (judgement === 'taken') return { result: 'hit', token };
    // Not awaited: the token's age is only right now.
    if (judgement === 'refused') void store.remove(name);
    return { result: 'old' };
  }

  /** The token of another replica, or `claimed` if this one must request it. */
  async function claimOrWait(places: Places, wanted: WantedToken): Promise<SharedToken | 'claimed' | 'late'> {
    const untilMs = clock.monotonicMs() + MAX_WAIT_MS;
    for (;;) {
      const claim = await store.claim(claimOf(places), CLAIM_MS);
      if (claim.state === 'away') return 'late';
      if (claim.value === 'claimed') {
        // The claimant may have finished since the last look.
        const { token } = await look(places, wanted);
        if (token === undefined) return 'claimed';
        // Not awaited: the token's age is only right now.
        void store.remove(claimOf(places));
        return token;
      }
      if (clock.monotonicMs() >= untilMs) return 'late';
      await sleep(clock, LOOK_INTERVAL_MS * (0.5 + random()), wanted.signal);
      if (wanted.signal.aborted) return 'late';
      const { result, token } = await look(places, wanted);
      if (token !== undefined) return token;
      if (result === 'away') return 'late';
    }
  }

  async function keep({ key, name }: Place, askedAt: Instant, outcome: TokenResponse): Promise<void> {
    if (outcome.result !== 'success' || !Number.isFinite(outcome.lifetimeMs)) return;
    const { accessToken, lifetimeMs } = outcome;
    const leftMs = Math.floor(remainingMs(later(askedAt, lifetimeMs), clock.now()));
    if (leftMs <= 0) return;
    const value = seal(key, name, { accessToken, lifetimeMs, requestedAtMs: askedAt.wallMs });
    const { state } = await store.write(name, value, leftMs);
    metrics.stored(state === 'answered' ? 'stored' : 'away');
  }

  async function askForAll(
    places: Places,
    isClaimed: boolean,
    ask: () => Promise<TokenResponse>,
  ): Promise<TokenResponse> {
    const askedAt = clock.now();
    const outcome = await ask();
    void keep(places.current, askedAt, outcome).then(async () => {
      const claimedForMs = clock.monotonicMs() - askedAt.monotonicMs;
      if (isClaimed && claimedForMs < CLAIM_MS - CLAIM_MARGIN_MS) await store.remove(claimOf(places));
    });
    return outcome;
  }

  async function obtain(
    config: CredentialConfig,
    wanted: WantedToken,
    ask: () => Promise<TokenResponse>,
  ): Promise<TokenResponse> {
    const identity = identityOf(config, wanted);
    if (identity === undefined) return await ask();
    const places = placesOf(keys(), identity);
    const first = await look(places, wanted);
    if (first.token !== undefined || first.result === 'away') {
      metrics.looked(first.result);
      return first.token === undefined ? await askForAll(places, false, ask) : taken(first.token);
    }
    const next = await claimOrWait(places, wanted);
    if (typeof next === 'string') {
      metrics.looked(first.result);
      return await askForAll(places, next === 'claimed', ask);
    }
    metrics.looked('waited');
    return taken(next);
  }

  return { of: (config) => ({ obtain: (wanted, ask) => obtain(config, wanted, ask) }) };
}

/** Without a certain identity, a grant is not shared. */
function identityOf(config: CredentialConfig, { credentials }: WantedToken): string | undefined {
  try {
    return grantIdentity(config, credentials);
  } catch {
    return undefined;
  }
}

function placesOf({ current, previous }: CacheKeys, identity: string): Places {
  const place = (key: CacheKey): Place => ({ key, name: nameOf(key, identity) });
  const first = place(current);
  return { current: first, all: previous === undefined ? [first] : [first, place(previous)] };
}

function claimOf({ current }: Places): string {
  return `${current.name}:claim`;
}

function taken({ accessToken, lifetimeMs, ageMs }: SharedToken): TokenResponse {
  return { result: 'success', accessToken, lifetimeMs, sharedAgeMs: ageMs };
}

/**
 * Holds secrets in clear: use it only as input of an HMAC.
 * @returns undefined for grants that depend on a token kept fresh elsewhere, and for mounted tokens.
 */
export function grantIdentity(config: CredentialConfig, credentials: Credentials): string | undefined {
  const { name, tokenUrl, issuerUrl, clientId, clientAuth, grant, scope, audience, parameters, tokenType } =
    config;
  if (!mayShareToken(clientAuth) || !mayShareGranted(grant)) return undefined;
  const settings = { name, tokenUrl, issuerUrl, clientId, clientAuth, grant, scope, audience, parameters };
  return JSON.stringify(ordered({ settings, tokenType, credentials }));
}

/** Fixes the order of fields, so that equal values give equal texts. */
function ordered(value: unknown): unknown {
  if (value instanceof KeyObject) return value.export({ type: 'pkcs8', format: 'der' }).toString('base64');
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    throw new Error('a credential holds something of which a text would not say what it is');
  }
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return fields.map(([name, field]) => [name, ordered(field)]);
}
