/** Tokens that come without their lifetime, or with it in a form of its own: good ones are used as long as they live. */

import { expect } from 'vitest';
import { MAX_GRANTS_PER_MINUTE, mostInAnyMinute } from './designed-grants.ts';
import { describeAnswers, record } from './matrix.ts';
import { answer, type FaultProvider } from './provider.ts';
import { World } from './world.ts';

export interface TokenOddity {
  readonly name: string;
  /** The real one. */
  readonly lifetimeSeconds: number;
  /** What the token endpoint answers, at this wall time. */
  readonly grant: (provider: FaultProvider, wallSeconds: number) => Record<string, unknown>;
}

function jwt(provider: FaultProvider, claims: { exp: number; iat: number }): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  // Each is another token, as the provider's record wants it.
  const jti = provider.requestsAtMs.length;
  return `${part({ alg: 'none' })}.${part({ ...claims, jti })}.c2ln`;
}

function withoutExpiresIn(provider: FaultProvider, token: string, lifetimeSeconds: number) {
  provider.remember(token, lifetimeSeconds);
  return { access_token: token, token_type: 'Bearer' };
}

export const TOKEN_ODDITIES: readonly TokenOddity[] = [
  {
    name: 'token without expiry, opaque',
    lifetimeSeconds: 300,
    grant: (provider) => ({ ...provider.issue(), expires_in: undefined }),
  },
  {
    name: 'token without expiry, a JWT',
    lifetimeSeconds: 120,
    grant: (provider, now) => withoutExpiresIn(provider, jwt(provider, { iat: now, exp: now + 120 }), 120),
  },
  {
    name: 'token without expiry, a JWT out of a cache',
    lifetimeSeconds: 120,
    grant: (provider, now) =>
      withoutExpiresIn(provider, jwt(provider, { iat: now - 180, exp: now + 120 }), 120),
  },
  {
    name: 'a JWT that ends before its expires_in',
    lifetimeSeconds: 120,
    grant: (provider, now) => ({
      ...withoutExpiresIn(provider, jwt(provider, { iat: now, exp: now + 120 }), 120),
      expires_in: 300,
    }),
  },
  {
    name: 'expires_in a numeric string',
    lifetimeSeconds: 300,
    grant: (provider) => ({ ...provider.issue(), expires_in: '300' }),
  },
];

const OBSERVED_MS = 1_200_000;

export async function runTokenOddity(oddity: TokenOddity, seed: number): Promise<void> {
  const { lifetimeSeconds } = oddity;
  const world = await World.start({ lifetimeSeconds, seed });
  const { app, provider, upstream } = world;
  provider.behaviour = (response) => {
    const body = oddity.grant(provider, world.clock.now().wallMs / 1000);
    answer(200, JSON.stringify(body))(response, provider);
  };
  await world.until(() => world.token.ready, 1000, 10);
  await world.live(OBSERVED_MS);

  expect(app.answers.every(({ status, tookMs }) => status === 200 && tookMs === 0)).toBe(true);
  expect(upstream.violations).toEqual([]);
  const grants = provider.requestsAtMs.length;
  expect(grants).toBeGreaterThan(OBSERVED_MS / (lifetimeSeconds * 1000));
  const most = mostInAnyMinute(provider.requestsAtMs);
  expect(most).toBeLessThanOrEqual(MAX_GRANTS_PER_MINUTE.succeeding);
  const metrics = await world.metrics();
  expect(metrics.sum('token_refresh_total', { result: 'success' })).toBe(grants);
  expect(metrics.sum('token_refresh_total')).toBe(grants);
  expect(metrics.sum('token_ready')).toBe(1);
  record({
    row: oddity.name,
    app: describeAnswers(app.answers),
    grants: `${grants} in ${OBSERVED_MS / 1000} s, ≤ ${most}/min of ${MAX_GRANTS_PER_MINUTE.succeeding}`,
    metrics: `success ${grants}, ready 1`,
    recovery: 'nothing to recover from',
  });
}

/** A provider that counts whole seconds, and an app that asks all the time: no token is sent after its end. */
export async function runShortLivedTokens(lifetimeSeconds: number, seed: number): Promise<void> {
  const world = await World.start({ lifetimeSeconds, seed });
  const { app, provider, upstream } = world;
  provider.behaviour = (response) => {
    const nowMs = world.clock.now().wallMs;
    const body = provider.issue();
    // RFC 7519 §2: the second that had begun counts from its start.
    provider.remember(String(body['access_token']), lifetimeSeconds - (nowMs % 1000) / 1000);
    answer(200, JSON.stringify(body))(response, provider);
  };
  await world.until(() => world.token.ready, 1000, 10);
  const forMs = 30_000;
  for (let sinceMs = 0; sinceMs < forMs; sinceMs += 30) {
    void app.send();
    await world.advance(30);
  }
  while (app.pending > 0) await world.advance(50);
  expect(upstream.violations).toEqual([]);
  expect(app.answers.every(({ status, tookMs }) => status === 200 && tookMs < 1000)).toBe(true);
  const grants = provider.requestsAtMs.length;
  // No sooner than minInterval.
  expect(grants).toBeLessThanOrEqual(forMs / 1000 + 2);
  record({
    row: `tokens of ${lifetimeSeconds} s, counted in whole seconds`,
    app: describeAnswers(app.answers),
    grants: `${grants} in ${forMs / 1000} s`,
    metrics: 'none sent after its end',
    recovery: 'nothing to recover from',
  });
}
