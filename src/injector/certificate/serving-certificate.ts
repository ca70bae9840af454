import { createPrivateKey, X509Certificate } from 'node:crypto';
import { messageOf } from '../../errors.ts';

/** What the webhook listener shows the API server. */
export interface ServingCertificate {
  /** PEM, the leaf first. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  /** Unix time in ms. */
  readonly expiresAtMs: number;
}

/** Where the serving certificate comes from, and each one that takes its place. */
export interface CertificateSource {
  /** Undefined until there is a first one. */
  current(): ServingCertificate | undefined;
  /** Calls back with each new certificate. Returns the function that ends it. */
  onChange(listener: (certificate: ServingCertificate) => void): () => void;
  close(): Promise<void>;
}

/** The certificate, or what is wrong with certificate and key; never the key itself. */
export function parseServingCertificate(cert: string, key: string): ServingCertificate | string {
  let leaf: X509Certificate;
  try {
    leaf = new X509Certificate(cert);
  } catch (error) {
    return `the certificate is no PEM certificate: ${messageOf(error)}`;
  }
  try {
    if (!leaf.checkPrivateKey(createPrivateKey(key))) return 'the private key is not that of the certificate';
  } catch {
    return 'the private key is no PEM key, or is encrypted';
  }
  return { cert, key, expiresAtMs: leaf.validToDate.getTime() };
}

/** Why the listener could not be used now, or undefined when it can. */
export function certificateMissing(
  certificate: ServingCertificate | undefined,
  nowMs: number,
): string | undefined {
  if (certificate === undefined) return 'there is none yet';
  if (nowMs < certificate.expiresAtMs) return undefined;
  return `it ended ${new Date(certificate.expiresAtMs).toISOString()}`;
}
