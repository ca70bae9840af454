/** Tokens that come without their lifetime, or with it in a form of its own: good ones are used as long as they live. */

import { expect } from 'vitest';
import { MOST_GRANTS_PER_MINUTE, mostInAnyMinute } from './designed-grants.ts';
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
  expect(most).toBeLessThanOrEqual(MOST_GRANTS_PER_MINUTE.succeeding);
  const metrics = await world.metrics();
  expect(metrics.sum('token_refresh_total', { result: 'success' })).toBe(grants);
  expect(metrics.sum('token_refresh_total')).toBe(grants);
  expect(metrics.sum('token_ready')).toBe(1);
  record({
    row: oddity.name,
    app: describeAnswers(app.answers),
    grants: `${grants} in ${OBSERVED_MS / 1000} s, ≤ ${most}/min of ${MOST_GRANTS_PER_MINUTE.succeeding}`,
    metrics: `success ${grants}, ready 1`,
    recovery: 'nothing to recover from',
  });
}
