/** A rotation whose two sides do not change together: how many pods lose their token over it. */

import { DEFAULT_RENEWAL } from '../../src/config/renewal.ts';
import type { GrantedToken, RefusedGrant } from '../../src/token/provider/token-response.ts';
import { INITIAL_STATE, reduce, type TokenEvent, type TokenState } from '../../src/token/token-state.ts';
import { EventQueue } from './event-queue.ts';
import { instant } from './fleet.ts';
import { seededRandom } from './random.ts';

export interface RejectedRotation {
  readonly pods: number;
  readonly tokenLifetimeMs: number;
  /** How long after the mounted Secret the provider accepts the new secret, and the old one no more. */
  readonly providerBehindMs: number;
  readonly seed: number;
}

export interface RejectedRotationRun {
  /** Of the pods, those that were without a token that may be sent at some time after the rotation. */
  readonly lostToken: number;
  /** The longest that a pod was without, in ms. */
  readonly longestWithoutMs: number;
  /** Grants that the provider rejected, of the pod that was rejected most. */
  readonly mostRejections: number;
}

const ROUND_TRIP_MS = 50;

/** Long enough that no two pods renew in step any more when the Secret changes. */
const RENEWALS_BEFORE = 8;

interface Pod {
  state: TokenState;
  rejections: number;
  withoutMs: number;
}

export function runRejectedRotation(scenario: RejectedRotation): RejectedRotationRun {
  const { pods: count, tokenLifetimeMs, providerBehindMs } = scenario;
  const random = seededRandom(scenario.seed);
  const queue = new EventQueue<{ readonly pod: Pod; readonly event: TokenEvent }>();
  const rotatedAtMs = RENEWALS_BEFORE * tokenLifetimeMs;
  const providerChangesAtMs = rotatedAtMs + providerBehindMs;
  const endMs = providerChangesAtMs + 4 * tokenLifetimeMs + 1_200_000;
  const pods = Array.from(
    { length: count },
    (): Pod => ({ state: INITIAL_STATE, rejections: 0, withoutMs: 0 }),
  );
  for (const pod of pods) {
    queue.push(tokenLifetimeMs * random(), { pod, event: { type: 'credentials_loaded' } });
    queue.push(rotatedAtMs, { pod, event: { type: 'credentials_loaded' } });
  }

  function answer(atMs: number, usesNewest: boolean): GrantedToken | RefusedGrant {
    const isNew = atMs >= rotatedAtMs && usesNewest;
    return isNew === atMs >= providerChangesAtMs
      ? { result: 'success', accessToken: 'simulated', lifetimeMs: tokenLifetimeMs }
      : { result: 'rejected', detail: 'status 401 invalid_client' };
  }

  for (let next = queue.pop(); next !== undefined && next.atMs < endMs; next = queue.pop()) {
    const { atMs } = next;
    const { pod, event } = next.event;
    const before = pod.state;
    pod.state = reduce(before, event, { now: instant(atMs), random: random(), policy: DEFAULT_RENEWAL });
    const { grant, due, token } = pod.state;
    if (grant !== undefined && grant !== before.grant) {
      const outcome = answer(atMs, grant.reason !== 'previous_credentials');
      if (outcome.result === 'rejected') pod.rejections += 1;
      queue.push(atMs + ROUND_TRIP_MS, { pod, event: { type: 'grant_ended', id: grant.id, outcome } });
    } else if (due !== undefined && due !== before.due) {
      queue.push(due.at.monotonicMs, { pod, event: { type: 'looked' } });
    }
    if (token !== before.token && before.token !== undefined) {
      pod.withoutMs = Math.max(pod.withoutMs, atMs - before.token.sendableUntil.monotonicMs);
    }
  }
  return {
    lostToken: pods.filter(({ withoutMs }) => withoutMs > 0).length / count,
    longestWithoutMs: Math.max(...pods.map(({ withoutMs }) => withoutMs)),
    mostRejections: Math.max(...pods.map(({ rejections }) => rejections)),
  };
}
