/** The Secret that the replicas share. */

import { X509Certificate } from 'node:crypto';
import type { ApiObject, KubernetesApi } from '../../platform/kubernetes/api.ts';
import type { Clock } from '../../platform/time/clock.ts';
import {
  isIssuedBy,
  parseServingCertificate,
  type ServingCertificate,
} from '../../platform/tls/serving-certificate.ts';
import { certificatesIn } from '../../platform/x509/pem.ts';
import type { IssuedCertificate } from './certificate-authority.ts';

export interface CertificateSecret extends ApiObject {
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
}

export interface StoredCertificates {
  readonly current: ServingCertificate;
  /** Waits until every API server trusts its CA. */
  readonly next?: ServingCertificate;
  /** Since when the webhooks trust the CA of `next`, Unix time in ms. */
  readonly publishedAtMs?: number;
  readonly isRotationAsked?: true;
  /** PEM, newest first. */
  readonly authorities: readonly string[];
}

/** The first three are those of type kubernetes.io/tls. */
const KEYS = {
  cert: 'tls.crt',
  key: 'tls.key',
  authorities: 'ca.crt',
  nextCert: 'next.crt',
  nextKey: 'next.key',
} as const;

/** With any value it has the certificate replaced now. */
const ROTATE = 'token-sidecar.dev/rotate';

const PUBLISHED_AT = 'token-sidecar.dev/next-published-at';

/** Undefined if the Secret holds no usable set. */
export function readStoredCertificates(
  secret: CertificateSecret | undefined,
): StoredCertificates | undefined {
  const text = (key: string): string => Buffer.from(String(secret?.data?.[key]), 'base64').toString('utf8');
  const current = parseServingCertificate(text(KEYS.cert), text(KEYS.key));
  if (typeof current === 'string') return undefined;
  const next = parseServingCertificate(text(KEYS.nextCert), text(KEYS.nextKey));
  const publishedAtMs = Date.parse(secret?.metadata.annotations?.[PUBLISHED_AT] ?? '');
  return {
    current,
    ...(typeof next === 'string' ? {} : { next }),
    ...(Number.isNaN(publishedAtMs) ? {} : { publishedAtMs }),
    ...(secret?.metadata.annotations?.[ROTATE] === undefined ? {} : { isRotationAsked: true as const }),
    authorities: splitPem(text(KEYS.authorities)),
  };
}

/** Its other metadata stays. */
export function writeStoredCertificates(
  secret: CertificateSecret,
  { current, next, publishedAtMs, authorities }: StoredCertificates,
): CertificateSecret {
  const { [PUBLISHED_AT]: _, [ROTATE]: __, ...annotations } = secret.metadata.annotations ?? {};
  const texts = {
    [KEYS.cert]: current.cert,
    [KEYS.key]: current.key,
    [KEYS.authorities]: authorities.join(''),
    ...(next === undefined ? {} : { [KEYS.nextCert]: next.cert, [KEYS.nextKey]: next.key }),
  };
  return {
    ...secret,
    metadata: {
      ...secret.metadata,
      annotations:
        publishedAtMs === undefined
          ? annotations
          : { ...annotations, [PUBLISHED_AT]: new Date(publishedAtMs).toISOString() },
    },
    data: Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    ),
  };
}

export function servingCertificateOf({ cert, key }: IssuedCertificate): ServingCertificate {
  const parsed = parseServingCertificate(cert, key);
  if (typeof parsed === 'string') throw new TypeError(`a certificate just issued is not usable: ${parsed}`);
  return parsed;
}

/** Those that have not expired. */
export function livingAuthorities(authorities: readonly string[], nowMs: number): string[] {
  return authorities.filter((pem) => nowMs < new X509Certificate(pem).validToDate.getTime());
}

/** Leaves out those made under a clock that was ahead. */
export function begunAuthorities(authorities: readonly string[], nowMs: number): string[] {
  return authorities.filter((pem) => nowMs >= new X509Certificate(pem).validFromDate.getTime());
}

function splitPem(bundle: string): string[] {
  return certificatesIn(bundle).map((certificate) => certificate.toString());
}

// Which CAs the API server trusts for the webhooks, and for how long.

interface TrustedAuthorities {
  saw(name: string, configuration: ConfigurationObject | undefined): void;
  isKnown(): boolean;
  /** Trusted CAs, PEM. */
  issuersOf(cert: string): readonly string[];
  /** In ms; undefined if one does not trust its CA. */
  trustedForMs(cert: string): number | undefined;
}

/** @param names of configurations that must trust a CA. */
export function trackTrustedAuthorities(names: readonly string[], clock: Clock): TrustedAuthorities {
  const seen = new Map<string, readonly (readonly string[])[]>();
  /** PEM of the CAs that all trust, and since when, in monotonic time. */
  const since = new Map<string, number>();

  function issuersOf(cert: string): readonly string[] {
    const leaf = new X509Certificate(cert);
    return [...since.keys()].filter((pem) => isIssuedBy(leaf, new X509Certificate(pem)));
  }

  return {
    saw(name, configuration) {
      seen.set(
        name,
        configuration === undefined ? [] : caBundlesOf(configuration).map((bundle) => splitPem(bundle)),
      );
      const [first = [], ...others] = [...seen.values()].flat();
      const common = first.filter((pem) => others.every((bundle) => bundle.includes(pem)));
      for (const pem of [...since.keys()]) if (!common.includes(pem)) since.delete(pem);
      for (const pem of common) if (!since.has(pem)) since.set(pem, clock.monotonicMs());
    },
    isKnown: () => names.every((name) => seen.has(name)),
    issuersOf,
    trustedForMs(cert) {
      const times = issuersOf(cert).map((pem) => since.get(pem) as number);
      return times.length === 0 ? undefined : clock.monotonicMs() - Math.min(...times);
    },
  };
}

export interface WebhookConfiguration {
  readonly kind: 'mutating' | 'validating';
  readonly name: string;
}

export interface ConfigurationObject extends ApiObject {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly clientConfig?: { readonly caBundle?: string };
  }[];
}

const GROUP = '/apis/admissionregistration.k8s.io/v1';

export function collectionOf({ kind }: WebhookConfiguration): string {
  return `${GROUP}/${kind}webhookconfigurations`;
}

/** PEM, by webhook. */
function caBundlesOf({ webhooks = [] }: ConfigurationObject): readonly string[] {
  return webhooks.map(({ clientConfig }) =>
    Buffer.from(clientConfig?.caBundle ?? '', 'base64').toString('utf8'),
  );
}

/**
 * Replaces what every webhook of the configuration trusts.
 * @param authorities PEM.
 * @param keep which other trusted CAs stay for now, PEM.
 * @throws {KubernetesApiError}
 */
export async function trustAuthorities(
  api: KubernetesApi,
  configuration: WebhookConfiguration,
  authorities: readonly string[],
  keep: (others: readonly string[]) => readonly string[] = () => [],
): Promise<void> {
  const path = `${collectionOf(configuration)}/${configuration.name}`;
  const live = await api.request<ConfigurationObject>('GET', path);
  const { webhooks = [] } = live;
  const found = new Set(caBundlesOf(live).flatMap(splitPem));
  const kept = keep([...found].filter((pem) => !authorities.includes(pem)));
  const caBundle = Buffer.from([...authorities, ...kept].join('')).toString('base64');
  const wrong = webhooks.filter(({ clientConfig }) => clientConfig?.caBundle !== caBundle);
  if (wrong.length === 0) return;
  // Merged by name, so that nobody else's change is undone.
  await api.request('PATCH', path, {
    contentType: 'application/strategic-merge-patch+json',
    body: { webhooks: wrong.map(({ name }) => ({ name, clientConfig: { caBundle } })) },
  });
}
