/** A token endpoint as a fleet sees it: so many grants a second, a short queue, and a time when it is away. */

import type { GrantedToken, RefusedGrant } from '../../src/token/provider/token-response.ts';

export interface ProviderModel {
  /** Grants a second; what is beyond waits. */
  readonly capacityPerSecond: number;
  /** What would wait longer is answered 503 at once. */
  readonly longestWaitMs: number;
  readonly roundTripMs: number;
  readonly tokenLifetimeMs: number;
  /** Connections are refused from the first instant to the second. */
  readonly outage: { readonly fromMs: number; readonly toMs: number };
}

export interface ProviderResponse {
  readonly atMs: number;
  readonly outcome: GrantedToken | RefusedGrant;
}

export function startProvider(model: ProviderModel): (nowMs: number) => ProviderResponse {
  const { outage, roundTripMs } = model;
  let busyUntilMs = 0;
  return (nowMs) => {
    if (nowMs >= outage.fromMs && nowMs < outage.toMs) {
      return { atMs: nowMs + 1, outcome: { result: 'unavailable', detail: 'ECONNREFUSED' } };
    }
    const beginsAtMs = Math.max(nowMs, busyUntilMs);
    if (beginsAtMs - nowMs > model.longestWaitMs) {
      return { atMs: nowMs + roundTripMs, outcome: { result: 'unavailable', detail: 'status 503' } };
    }
    busyUntilMs = beginsAtMs + 1000 / model.capacityPerSecond;
    return {
      atMs: busyUntilMs + roundTripMs,
      outcome: { result: 'success', accessToken: 'simulated', lifetimeMs: model.tokenLifetimeMs },
    };
  };
}
