import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../errors.ts';
import { blocksOf } from '../x509/pem.ts';

/** The certificate that a listener shows its callers. */
export interface ServingCertificate {
  /** PEM, the leaf first. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  /** Unix time in ms. */
  readonly startsAtMs: number;
  /** Unix time in ms. */
  readonly expiresAtMs: number;
}

/** The source of the serving certificate and of its successors. */
export interface CertificateSource {
  /** Undefined until there is a first one. */
  current(): ServingCertificate | undefined;
  /** Calls back with each new certificate. Returns a function that stops it. */
  onChange(listener: (certificate: ServingCertificate) => void): () => void;
  close(): Promise<void>;
}

/** The certificate, or what is wrong with certificate and key; never the key itself. */
export function parseServingCertificate(cert: string, key: string): ServingCertificate | string {
  let leaf: X509Certificate;
  let others: X509Certificate[];
  try {
    leaf = new X509Certificate(cert);
    others = blocksOf(cert)
      .slice(1)
      .map((block) => new X509Certificate(block));
  } catch (error) {
    return `the certificate or its chain is no PEM certificate: ${messageOf(error)}`;
  }
  try {
    if (!leaf.checkPrivateKey(createPrivateKey(key))) return 'the private key is not that of the certificate';
  } catch {
    return 'the private key is no PEM key, or is encrypted';
  }
  if (others.length > 0 && ![leaf, ...others].some((issuer) => isIssuedBy(leaf, issuer))) {
    return 'the chain is that of another certificate: nothing in it issued the first one';
  }
  try {
    // TLS has the last word: it rejects some that pass the checks above, for example for a key that is too short.
    createSecureContext({ cert, key });
  } catch (error) {
    return `TLS does not take it: ${messageOf(error)}`;
  }
  return { cert, key, startsAtMs: leaf.validFromDate.getTime(), expiresAtMs: leaf.validToDate.getTime() };
}

export function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** Why a certificate is not valid now, or undefined. */
export function outsideValidity(
  { startsAtMs, expiresAtMs }: ServingCertificate,
  nowMs: number,
): string | undefined {
  if (nowMs < startsAtMs) return `it is not valid before ${new Date(startsAtMs).toISOString()}`;
  return nowMs < expiresAtMs ? undefined : `it ended ${new Date(expiresAtMs).toISOString()}`;
}

/** Why the listener cannot be used now; undefined if it can. */
export function certificateMissing(
  certificate: ServingCertificate | undefined,
  nowMs: number,
): string | undefined {
  return certificate === undefined ? 'there is none yet' : outsideValidity(certificate, nowMs);
}
