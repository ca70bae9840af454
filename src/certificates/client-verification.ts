/** Who may call a listener whose callers show a certificate of their own. */

import type { PeerCertificate } from 'node:tls';

/** What the listener asks of callers. */
export interface ClientVerification {
  /** PEM of the CAs whose certificates are accepted. */
  authorities(): string;
  /** Calls back when they change. Returns the function that ends it. */
  onChange(listener: () => void): () => void;
  /** Whether the certificate of a verified connection has a name that may call. */
  accepts(socket: { getPeerCertificate(): PeerCertificate }): boolean;
}

/** The common names of a certificate are in the list; an empty list takes all that the CA has signed. */
export function hasAllowedName(certificate: PeerCertificate, names: readonly string[]): boolean {
  if (names.length === 0) return true;
  const subject: string | string[] | undefined = certificate.subject?.CN;
  const own = [subject].flat();
  return names.some((name) => own.includes(name));
}
