/** `tls_client_auth`: a certificate, shown in the handshake (RFC 8705 §2). */

import type { UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import { parsePrivateKey } from './assertion-key.ts';
import { parseCertificate } from './certificate.ts';
import type { MountedFiles } from './mounted-files.ts';
import type { ProofOfClient } from './proof-of-client.ts';

/** A certificate chain and its key, in PEM. */
export interface CertifiedClient {
  readonly method: 'tls_client_auth';
  readonly clientId: string;
  readonly certificate: string;
  readonly privateKey: string;
}

/** The names in a Secret of type `kubernetes.io/tls`. */
export const CERTIFICATE_FILES = ['tls.crt', 'tls.key'] as const;

export function certifiedClient(clientId: string, files: MountedFiles): CertifiedClient | UnusableSecret {
  const certificate = files.content('tls.crt');
  const privateKey = files.content('tls.key');
  const leaf = parseCertificate(certificate);
  if (leaf === undefined) return files.malformed('tls.crt', 'a PEM certificate');
  const key = parsePrivateKey(privateKey);
  if (key === undefined) return files.malformed('tls.key', 'an unencrypted private key in PEM');
  if (!leaf.checkPrivateKey(key)) return files.malformed('tls.key', 'the key of the certificate in tls.crt');
  return { method: 'tls_client_auth', clientId, certificate, privateKey };
}

/** The handshake has shown the certificate; the id says whose it should be. */
export function proveByCertificate({ clientId }: CertifiedClient): ProofOfClient {
  return { parameters: { client_id: clientId } };
}
