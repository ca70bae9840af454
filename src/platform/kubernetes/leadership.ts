/** Work for one of several replicas, elected by a Lease with client-go's algorithm. */

import { messageOf } from '../errors.ts';
import type { Logger } from '../log/logger.ts';
import { type BackoffOptions, sleep } from '../time/async.ts';
import { type ApiObject, type KubernetesApi, type OwnerReference, type Query, statusOf } from './api.ts';
import { type CollectionListener, watchCollection } from './collection-watch.ts';

export interface LeadershipOptions extends BackoffOptions {
  readonly namespace: string;
  readonly name: string;
  /** Unique, even from this replica's predecessor. */
  readonly identity: string;
  /** Called if there is no Lease yet; it is deleted with its owner. */
  readonly owner?: () => Promise<OwnerReference | undefined>;
  readonly log: Logger;
}

interface Leadership {
  held(): boolean;
  /** Gives up the Lease, so that another replica need not wait. */
  close(): Promise<void>;
}

/** A replica takes over within 15 s. Each step is safe with two leaders. */
const LEASE_SECONDS = 12;
const RENEW_INTERVAL_MS = 2_500;
/** Before the others may take over. */
const RENEW_WITHIN_MS = 9_000;

interface Lease extends ApiObject {
  readonly spec?: LeaseSpec;
}

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

/** @param onElected called for each election of this replica. */
export function contendForLeadership(
  api: KubernetesApi,
  options: LeadershipOptions,
  onElected: () => void,
): Leadership {
  const { namespace, name, identity, clock, random, log } = options;
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const abort = new AbortController();
  /** With our time, since the Lease's own is by another clock. */
  let seen: { readonly version: string | undefined; readonly atMs: number; told: boolean } | undefined;
  let renewedAtMs: number | undefined;

  const held = (): boolean =>
    renewedAtMs !== undefined && clock.now().monotonicMs - renewedAtMs < RENEW_WITHIN_MS;

  function specNow(previous: LeaseSpec | undefined): LeaseSpec {
    const now = new Date(clock.now().wallMs).toISOString().replace('Z', '000Z');
    const mine = previous?.holderIdentity === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: LEASE_SECONDS,
      acquireTime: (mine ? previous.acquireTime : undefined) ?? now,
      renewTime: now,
      leaseTransitions: (previous?.leaseTransitions ?? 0) + (mine ? 0 : 1),
    };
  }

  function mayTake({ metadata, spec }: Lease): boolean {
    if (!spec?.holderIdentity || spec.holderIdentity === identity) return true;
    const { monotonicMs } = clock.now();
    if (seen === undefined || seen.version !== metadata.resourceVersion) {
      seen = { version: metadata.resourceVersion, atMs: monotonicMs, told: false };
    }
    const lasts = (spec.leaseDurationSeconds ?? LEASE_SECONDS) * 1000;
    const unseenMs = monotonicMs - seen.atMs;
    if (unseenMs >= lasts * 0.75 && !seen.told) {
      seen.told = true;
      const what = { leader: spec.holderIdentity, seconds: Math.ceil((lasts - unseenMs) / 1000) };
      log.info(what, 'the leader does not renew its Lease: this replica takes over when it runs out');
    }
    return unseenMs >= lasts;
  }

  /** @throws {KubernetesApiError} 409 if another replica was quicker. */
  async function acquireOrRenew(): Promise<boolean> {
    let lease: Lease;
    try {
      lease = await api.request<Lease>('GET', `${collection}/${name}`);
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
      const owner = await options.owner?.();
      const body = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace, ...(owner === undefined ? {} : { ownerReferences: [owner] }) },
        spec: specNow(undefined),
      };
      await api.request('POST', collection, { body });
      return true;
    }
    if (!mayTake(lease)) return false;
    await api.request('PUT', `${collection}/${name}`, { body: { ...lease, spec: specNow(lease.spec) } });
    return true;
  }

  async function run(): Promise<void> {
    while (!abort.signal.aborted) {
      const startedAtMs = clock.now().monotonicMs;
      let wasHeld = held();
      try {
        const isMine = await acquireOrRenew();
        wasHeld = held();
        renewedAtMs = isMine ? startedAtMs : undefined;
      } catch (error) {
        if (statusOf(error) !== 409) log.warn({ err: error }, 'the Lease could not be renewed');
      }
      if (held() && !wasHeld && !abort.signal.aborted) {
        log.info({ lease: `${namespace}/${name}`, identity }, 'this replica is the leader');
        onElected();
      }
      // So that replicas ask at different times.
      await sleep(clock, RENEW_INTERVAL_MS * (0.9 + 0.2 * random()), abort.signal);
    }
  }

  const running = run();
  return {
    held,
    async close() {
      abort.abort();
      await running;
      if (!held()) return;
      renewedAtMs = undefined;
      try {
        const lease = await api.request<Lease>('GET', `${collection}/${name}`);
        if (lease.spec?.holderIdentity !== identity) return;
        const spec = { ...specNow(lease.spec), holderIdentity: '', leaseDurationSeconds: 1 };
        await api.request('PUT', `${collection}/${name}`, { body: { ...lease, spec } });
      } catch (error) {
        log.info({ err: error }, 'the Lease was not given up, and runs out');
      }
    },
  };
}

const LOOK_INTERVAL_MS = 5000;

interface LeaderWork<T> extends Pick<CollectionListener<T>, 'seen' | 'gone'> {
  readonly path: string;
  readonly query: Query;
  /** Called again if leadership was lost and regained. */
  elected?(): void;
  forget(): void;
  idle?(): void;
  /** Called once the whole collection has been seen; never twice at a time. */
  look(): Promise<void>;
  readonly failure: string;
}

interface LeaderWatch {
  /** Check it before each step that takes effect. */
  leads(): boolean;
  /** Resolves once the look has ended and the Lease is given up. */
  close(): Promise<void>;
}

export function watchAsLeader<T extends ApiObject>(
  api: KubernetesApi,
  options: LeadershipOptions,
  work: LeaderWork<T>,
): LeaderWatch {
  const { clock, log } = options;
  let isListed = false;
  let unwatch: (() => void) | undefined;
  let cancelTimer: (() => void) | undefined;
  let looking: Promise<void> | undefined;
  let closed = false;

  const leadership = contendForLeadership(api, options, elected);

  function elected(): void {
    if (closed) return;
    work.elected?.();
    unwatch ??= watchCollection<T>(api, work.path, work.query, options, {
      begun() {
        isListed = false;
        work.forget();
      },
      seen: (object, isNew) => work.seen(object, isNew),
      gone: (object) => work.gone(object),
      listed() {
        isListed = true;
      },
    });
  }

  function lookInTime(): void {
    cancelTimer = clock.after(LOOK_INTERVAL_MS, lookInTime);
    if (!leadership.held()) {
      unwatch?.();
      unwatch = undefined;
      isListed = false;
      work.forget();
      work.idle?.();
      return;
    }
    if (unwatch === undefined) elected();
    if (!isListed) return;
    looking ??= work
      .look()
      .catch((error: unknown) => log.error({ err: messageOf(error) }, work.failure))
      .finally(() => {
        looking = undefined;
      });
  }

  lookInTime();
  return {
    leads: () => !closed && leadership.held(),
    async close() {
      closed = true;
      cancelTimer?.();
      unwatch?.();
      await looking;
      await leadership.close();
    },
  };
}
