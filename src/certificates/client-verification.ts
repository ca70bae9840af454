/** Who may call a listener whose callers show a certificate of their own. */

import { X509Certificate } from 'node:crypto';
import type { PeerCertificate } from 'node:tls';
import { blocksOf } from '../x509/pem.ts';

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

/** The bundle as it was given, or what is wrong with it. */
export function parseAuthorities(pem: string): { readonly pem: string } | string {
  const blocks = blocksOf(pem);
  if (blocks.length === 0) return 'it holds no PEM certificate';
  try {
    const others = blocks.filter((block) => !new X509Certificate(block).ca);
    return others.length === 0 ? { pem } : 'it holds a certificate that is not of a CA';
  } catch {
    return 'it holds a PEM certificate that cannot be read';
  }
}
