/** The Secret that the replicas share: the certificate in use, its successor while one is being made known, the CAs. */

import { X509Certificate } from 'node:crypto';
import { parseServingCertificate, type ServingCertificate } from '../../certificates/serving-certificate.ts';
import type { ApiObject } from '../../kubernetes/api.ts';
import { certificatesIn } from '../../x509/pem.ts';
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
  /** Somebody asks for a new certificate before its time. */
  readonly isRotationAsked?: true;
  /** PEM of every CA that is trusted, newest first. */
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

/** Put on the Secret, with any value, it has the certificate replaced now; taken off once that has begun. */
export const ROTATE = 'token-sidecar.dev/rotate';

const PUBLISHED_AT = 'token-sidecar.dev/next-published-at';

/** Undefined when the Secret does not hold a usable set, as when it was made empty. */
export function readStoredCertificates(
  secret: CertificateSecret | undefined,
): StoredCertificates | undefined {
  // What is missing is no PEM either.
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

/** The Secret with this content; what else its metadata holds stays. */
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

/** What was issued, as what is served. */
export function servingCertificateOf({ cert, key }: IssuedCertificate): ServingCertificate {
  const parsed = parseServingCertificate(cert, key);
  if (typeof parsed === 'string') throw new TypeError(`a certificate just issued is not usable: ${parsed}`);
  return parsed;
}

/** The CAs among these that have not ended. */
export function livingAuthorities(authorities: readonly string[], nowMs: number): string[] {
  return authorities.filter((pem) => nowMs < new X509Certificate(pem).validToDate.getTime());
}

/** The CAs among these whose time has come: the others are of a clock that was ahead. */
export function begunAuthorities(authorities: readonly string[], nowMs: number): string[] {
  return authorities.filter((pem) => nowMs >= new X509Certificate(pem).validFromDate.getTime());
}

/** Each certificate on its own, in one spelling; what is not a certificate is left out. */
export function splitPem(bundle: string): string[] {
  return certificatesIn(bundle).map((certificate) => certificate.toString());
}
