/** Every replica serves the certificate in the Secret, and one maintains it. */

import { X509Certificate } from 'node:crypto';
import { messageOf } from '../../platform/errors.ts';
import { type KubernetesApi, type OwnerReference, statusOf } from '../../platform/kubernetes/api.ts';
import { watchObject } from '../../platform/kubernetes/collection-watch.ts';
import { contendForLeadership } from '../../platform/kubernetes/leadership.ts';
import type { Logger } from '../../platform/log/logger.ts';
import { type BackoffOptions, backoffMs } from '../../platform/time/async.ts';
import {
  type CertificateSource,
  createServedCertificate,
  outsideValidity,
  type ServedCertificateOptions,
  type ServingCertificate,
} from '../../platform/tls/serving-certificate.ts';
import type { issueCertificate } from './certificate-authority.ts';
import {
  begunAuthorities,
  type CertificateSecret,
  type ConfigurationObject,
  collectionOf,
  livingAuthorities,
  readStoredCertificates,
  type StoredCertificates,
  servingCertificateOf,
  trackTrustedAuthorities,
  trustAuthorities,
  type WebhookConfiguration,
  writeStoredCertificates,
} from './stored-certificates.ts';

interface SelfManagedOptions extends BackoffOptions {
  readonly namespace: string;
  /** The Lease has this name, too. */
  readonly secretName: string;
  readonly webhooks: readonly WebhookConfiguration[];
  readonly policy: RotationPolicy;
  /** See `LeadershipOptions`. */
  readonly identity: string;
  readonly metrics: ServedCertificateOptions['metrics'];
  readonly issue: typeof issueCertificate;
  readonly log: Logger;
}

const LOOK_INTERVAL_MS = 60_000;

/** So that undoing the leader's changes does not make it write without end. */
const MIN_LOOK_INTERVAL_MS = 1000;

/** How long a foreign CA stays trusted: by then no replica shows a certificate of it. */
const KEPT_FOR_MS = 900_000;
const MAX_KEPT = 4;

/** Undefined without a Secret. */
async function secretAsOwner(api: KubernetesApi, path: string): Promise<OwnerReference | undefined> {
  try {
    const { name, uid } = (await api.request<CertificateSecret>('GET', path)).metadata;
    return name === undefined || uid === undefined
      ? undefined
      : { apiVersion: 'v1', kind: 'Secret', name, uid };
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

export function manageCertificate(api: KubernetesApi, options: SelfManagedOptions): CertificateSource {
  const { namespace, secretName, webhooks, policy, clock, random, log } = options;
  const collection = `/api/v1/namespaces/${namespace}/secrets`;
  const served = createServedCertificate(options);
  let closed = false;

  const trusted = trackTrustedAuthorities(
    webhooks.map(({ name }) => name),
    clock,
  );
  let offered: ServingCertificate | undefined;
  let cancelTakeover: (() => void) | undefined;

  function takeOver(): void {
    cancelTakeover?.();
    if (closed || offered === undefined) return;
    const { propagationMs } = policy;
    const nowMs = clock.now().wallMs;
    const delayMs = takeoverDelayMs(served.current(), offered, { trusted, propagationMs, nowMs });
    if (delayMs === 0) served.offer(offered);
    else cancelTakeover = clock.after(Math.min(delayMs, LOOK_INTERVAL_MS), takeOver);
  }

  const unwatch = [
    watchObject<CertificateSecret>(api, collection, secretName, options, (secret) => {
      const stored = readStoredCertificates(secret);
      offered = stored?.current;
      if (stored !== undefined) takeOver();
      else if (served.current() !== undefined) served.refuse('the Secret holds no usable certificate');
      wake();
    }),
    // Reapplying the manifest removes the CAs from it.
    ...webhooks.map((webhook) =>
      watchObject<ConfigurationObject>(api, collectionOf(webhook), webhook.name, options, (configuration) => {
        trusted.saw(webhook.name, configuration);
        takeOver();
        wake();
      }),
    ),
  ];
  const leadership = contendForLeadership(
    api,
    { ...options, name: secretName, owner: () => secretAsOwner(api, `${collection}/${secretName}`) },
    wake,
  );

  let looking: Promise<void> | undefined;
  let lookAgain = false;
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let failures = 0;
  let cancelTimer: (() => void) | undefined;

  /** A call during a look causes another after it. */
  function wake(): void {
    if (closed) return;
    if (looking !== undefined) {
      lookAgain = true;
      return;
    }
    cancelTimer?.();
    const soonestMs = lookedAtMs + MIN_LOOK_INTERVAL_MS - clock.now().monotonicMs;
    if (soonestMs > 0) {
      cancelTimer = clock.after(soonestMs, wake);
      return;
    }
    looking = look().finally(() => {
      looking = undefined;
      if (!lookAgain) return;
      lookAgain = false;
      wake();
    });
  }

  async function look(): Promise<void> {
    let delayMs = LOOK_INTERVAL_MS;
    try {
      if (leadership.held()) {
        lookedAtMs = clock.now().monotonicMs;
        delayMs = Math.min(delayMs, Math.max(0, (await step()) - clock.now().wallMs));
      }
      failures = 0;
    } catch (error) {
      delayMs = backoffMs(++failures, random);
      // 409: another was quicker; the next look reads what it wrote.
      log[statusOf(error) === 409 ? 'info' : 'error'](
        { err: error, failures },
        'certificate not looked after',
      );
    }
    if (!closed) cancelTimer = clock.after(delayMs, wake);
  }

  /** Resolves to the next step's time, Unix time in ms. */
  async function step(): Promise<number> {
    const secret = await readSecret();
    const stored = readStoredCertificates(secret);
    const nowMs = clock.now().wallMs;
    const lost = stored === undefined ? stillServed(nowMs) : undefined;
    if (lost !== undefined) {
      await writeSecret(secret, lost);
      log.warn('the Secret of the certificate was lost, and is made again as the replicas have it');
      return nowMs;
    }
    const plan = planRotation(stored, policy, nowMs);
    if (plan.step !== 'wait') {
      const changed = await take(plan.step, stored, nowMs);
      await writeSecret(secret, changed);
      log.info({ step: plan.step }, 'certificate rotation');
      return nowMs;
    }
    if (stored === undefined) return plan.nextAtMs;
    for (const webhook of webhooks) {
      await trustAuthorities(api, webhook, stored.authorities, (others) =>
        keptOf(webhook.name, others, nowMs),
      );
    }
    if (stored.next !== undefined && stored.publishedAtMs === undefined) {
      await writeSecret(secret, { ...stored, publishedAtMs: nowMs });
      log.info('the webhooks trust the next certificate');
      return nowMs;
    }
    return plan.nextAtMs;
  }

  /** The content of a deleted Secret, as long as this replica shows it and the webhooks trust it. */
  function stillServed(nowMs: number): StoredCertificates | undefined {
    const current = served.current();
    if (current === undefined || outsideValidity(current, nowMs) !== undefined) return undefined;
    const authorities = trusted.issuersOf(current.cert);
    return authorities.length === 0 ? undefined : { current, authorities };
  }

  /** When foreign CAs were first found, by webhook and PEM. */
  const foundAtMs = new Map<string, number>();

  function keptOf(webhook: string, others: readonly string[], nowMs: number): readonly string[] {
    const living = livingAuthorities(others, nowMs).slice(0, MAX_KEPT);
    const keys = new Set(living.map((pem) => `${webhook} ${pem}`));
    for (const key of [...foundAtMs.keys()])
      if (key.startsWith(`${webhook} `) && !keys.has(key)) foundAtMs.delete(key);
    for (const key of keys) if (!foundAtMs.has(key)) foundAtMs.set(key, clock.monotonicMs());
    return living.filter(
      (pem) => clock.monotonicMs() - (foundAtMs.get(`${webhook} ${pem}`) as number) < KEPT_FOR_MS,
    );
  }

  async function take(
    kind: 'create' | 'stage' | 'promote' | 'prune',
    stored: StoredCertificates | undefined,
    nowMs: number,
  ): Promise<StoredCertificates> {
    const authorities = livingAuthorities(stored?.authorities ?? [], nowMs);
    if (stored !== undefined && kind === 'prune') return { ...stored, authorities };
    if (stored?.next !== undefined && kind === 'promote') return { current: stored.next, authorities };
    const issued = await options.issue({ hosts: policy.hosts, nowMs, lifetimeMs: policy.lifetimeMs });
    const made = servingCertificateOf(issued);
    const trusted = [issued.ca, ...begunAuthorities(authorities, nowMs)];
    return stored !== undefined && kind === 'stage'
      ? { current: stored.current, next: made, authorities: trusted }
      : { current: made, authorities: trusted };
  }

  async function readSecret(): Promise<CertificateSecret | undefined> {
    try {
      return await api.request<CertificateSecret>('GET', `${collection}/${secretName}`);
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw error;
    }
  }

  /** @throws {KubernetesApiError} 409 if another has written. */
  async function writeSecret(
    secret: CertificateSecret | undefined,
    content: StoredCertificates,
  ): Promise<void> {
    if (secret === undefined) {
      const made = { metadata: { name: secretName, namespace }, type: 'kubernetes.io/tls' };
      const body = { apiVersion: 'v1', kind: 'Secret', ...writeStoredCertificates(made, content) };
      await api.request('POST', collection, { body });
    } else {
      const body = writeStoredCertificates(secret, content);
      await api.request('PUT', `${collection}/${secretName}`, { body });
    }
  }

  return {
    current: served.current,
    onChange: served.onChange,
    async close() {
      closed = true;
      served.close();
      cancelTakeover?.();
      cancelTimer?.();
      for (const end of unwatch) end();
      await looking?.catch((error: unknown) => log.debug({ err: messageOf(error) }, 'the last look failed'));
      await leadership.close();
    },
  };
}

// When a replica may show the Secret's certificate. While the one in use is trusted, API servers first get time to trust its
// successor.

interface TakeoverOptions {
  readonly trusted: ReturnType<typeof trackTrustedAuthorities>;
  /** How long API servers may take to notice a changed webhook. */
  readonly propagationMs: number;
  /** Unix time in ms. */
  readonly nowMs: number;
}

/** In ms; Infinity if that depends on the webhooks. */
export function takeoverDelayMs(
  current: ServingCertificate | undefined,
  offered: ServingCertificate,
  { trusted, propagationMs, nowMs }: TakeoverOptions,
): number {
  if (current?.cert === offered.cert) return 0;
  const isValid = current !== undefined && outsideValidity(current, nowMs) === undefined;
  // The API server certainly trusts no expired certificate.
  if (!trusted.isKnown()) return isValid ? Number.POSITIVE_INFINITY : 0;
  const forMs = trusted.trustedForMs(offered.cert);
  const isInUse = isValid && trusted.trustedForMs(current.cert) !== undefined;
  if (forMs === undefined) return isInUse || current === undefined ? Number.POSITIVE_INFINITY : 0;
  return isInUse ? Math.max(0, propagationMs - forMs) : 0;
}

// A rotation never shows a certificate whose CA API servers may not know, nor forgets a CA in use. `stage` stores a successor and
// gives the webhooks both CAs, `promote` lets it take over, `prune` removes the expired CA.

interface RotationPolicy {
  readonly lifetimeMs: number;
  readonly propagationMs: number;
  readonly hosts: readonly string[];
}

type RotationStep = 'create' | 'stage' | 'promote' | 'prune' | 'wait';

interface RotationPlan {
  readonly step: RotationStep;
  /** Unix time in ms. */
  readonly nextAtMs: number;
}

/** The rest is for delays. */
const RENEW_AT = 2 / 3;

/** A certificate made under a clock that was ahead is useless until its time comes. */
export function planRotation(
  stored: StoredCertificates | undefined,
  { lifetimeMs, propagationMs, hosts }: RotationPolicy,
  nowMs: number,
): RotationPlan {
  if (
    stored === undefined ||
    stored.authorities.length === 0 ||
    outsideValidity(stored.current, nowMs) !== undefined
  ) {
    return { step: 'create', nextAtMs: nowMs };
  }
  const { current, next, publishedAtMs, authorities } = stored;
  const renewAtMs = current.expiresAtMs - lifetimeMs * (1 - RENEW_AT);
  const isDue = stored.isRotationAsked === true || nowMs >= renewAtMs || !hasHosts(current.cert, hosts);
  if (next === undefined || outsideValidity(next, nowMs) !== undefined || !hasHosts(next.cert, hosts)) {
    if (isDue) return { step: 'stage', nextAtMs: nowMs };
  } else {
    if (publishedAtMs === undefined) return { step: 'wait', nextAtMs: nowMs + propagationMs };
    const promoteAtMs = publishedAtMs + propagationMs;
    return nowMs >= promoteAtMs
      ? { step: 'promote', nextAtMs: nowMs }
      : { step: 'wait', nextAtMs: promoteAtMs };
  }
  if (livingAuthorities(authorities, nowMs).length < authorities.length)
    return { step: 'prune', nextAtMs: nowMs };
  return { step: 'wait', nextAtMs: renewAtMs };
}

function hasHosts(cert: string, hosts: readonly string[]): boolean {
  const certificate = new X509Certificate(cert);
  return hosts.every((host) => certificate.checkHost(host) !== undefined);
}
