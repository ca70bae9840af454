/** Who may call a listener that asks callers for a certificate. */

import type { PeerCertificate } from 'node:tls';

/** What the listener requires of callers. */
export interface ClientVerification {
  /** PEM of the CAs whose certificates are accepted. */
  authorities(): string;
  /** Calls back when they change. Returns a function that stops it. */
  onChange(listener: () => void): () => void;
  /** Whether the certificate of a verified connection has a name that may call. */
  accepts(socket: { getPeerCertificate(): PeerCertificate }): boolean;
}

/** Whether a certificate has a common name in the list; an empty list accepts any certificate of the CA. */
export function hasAllowedName(certificate: PeerCertificate, names: readonly string[]): boolean {
  if (names.length === 0) return true;
  const subject: string | string[] | undefined = certificate.subject?.CN;
  const own = [subject].flat();
  return names.some((name) => own.includes(name));
}
