import { X509Certificate } from 'node:crypto';

/** The first certificate of a PEM; undefined where there is none. */
export function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
