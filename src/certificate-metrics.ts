import { X509Certificate } from 'node:crypto';
import { Gauge, type Registry } from './prometheus.ts';

/** Who uses a file of certificates. */
export type CertificateUser = { readonly route: string } | { readonly credential: string };

export interface CertificateMetrics {
  /**
   * A file is in use from now on.
   * @param file as its key, or its key in a mounted Secret, is called.
   * @param role an identity ends with the first certificate of its chain that does; trust with the last of those it names.
   * @param pem one certificate or several.
   */
  inUse(user: CertificateUser, file: string, role: 'identity' | 'trust', pem: string): void;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Registers `token_sidecar_tls_certificate_expiry_timestamp_seconds`; once per registry. */
export function createCertificateMetrics(registry: Registry): CertificateMetrics {
  const ends = new Gauge({
    name: 'token_sidecar_tls_certificate_expiry_timestamp_seconds',
    help: 'Unix time at which a file of certificates that is in use ends: the first of a chain, the last of a list of authorities.',
    labelNames: ['route', 'credential', 'file'],
    registers: [registry],
  });
  return {
    inUse(user, file, role, pem) {
      const endsAtMs = [...pem.matchAll(CERTIFICATE)].map(([text]) => endOf(text)).filter(Number.isFinite);
      if (endsAtMs.length === 0) return;
      const atMs = role === 'identity' ? Math.min(...endsAtMs) : Math.max(...endsAtMs);
      ends.set({ ...user, file }, atMs / 1000);
    },
  };
}

/** Milliseconds since the epoch; NaN where it cannot be told. */
function endOf(pem: string): number {
  try {
    return new X509Certificate(pem).validToDate.getTime();
  } catch {
    // Whoever uses the file says what is wrong with it.
    return Number.NaN;
  }
}
