/** The Secret that the replicas share: the certificate in use, its successor until it takes over, and the CAs. */

import { X509Certificate } from 'node:crypto';
import type { ApiObject } from '../../platform/kubernetes/api.ts';
import { parseServingCertificate, type ServingCertificate } from '../../platform/tls/serving-certificate.ts';
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
  /** When the webhooks were seen to trust the CA of `next`, Unix time in ms. */
  readonly publishedAtMs?: number;
  /** Somebody requests a new certificate early. */
  readonly isRotationAsked?: true;
  /** PEM of every trusted CA, newest first. */
  readonly authorities: readonly string[];
}

/** Keys of the Secret's data; the first three are those of a Secret of type kubernetes.io/tls. */
const KEYS = {
  cert: 'tls.crt',
  key: 'tls.key',
  authorities: 'ca.crt',
  nextCert: 'next.crt',
  nextKey: 'next.key',
} as const;

/** An annotation that, with any value, has the certificate replaced now; removed once that has begun. */
const ROTATE = 'token-sidecar.dev/rotate';

const PUBLISHED_AT = 'token-sidecar.dev/next-published-at';

/** Undefined if the Secret holds no usable set, for example if it was created empty. */
export function readStoredCertificates(
  secret: CertificateSecret | undefined,
): StoredCertificates | undefined {
  // A missing key is no PEM either.
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

/** The Secret with this content; the rest of its metadata stays. */
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

/** An issued certificate in the form that is served. */
export function servingCertificateOf({ cert, key }: IssuedCertificate): ServingCertificate {
  const parsed = parseServingCertificate(cert, key);
  if (typeof parsed === 'string') throw new TypeError(`a certificate just issued is not usable: ${parsed}`);
  return parsed;
}

/** The CAs among these that have not expired. */
export function livingAuthorities(authorities: readonly string[], nowMs: number): string[] {
  return authorities.filter((pem) => nowMs < new X509Certificate(pem).validToDate.getTime());
}

/** The CAs among these that are valid already: a clock that was ahead made the others. */
export function begunAuthorities(authorities: readonly string[], nowMs: number): string[] {
  return authorities.filter((pem) => nowMs >= new X509Certificate(pem).validFromDate.getTime());
}

/** Each certificate separately, in one notation; anything else is left out. */
export function splitPem(bundle: string): string[] {
  return certificatesIn(bundle).map((certificate) => certificate.toString());
}
