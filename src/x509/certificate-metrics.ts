import type { X509Certificate } from 'node:crypto';
import { Gauge, type Registry } from '../prometheus.ts';
import { certificatesIn } from './pem.ts';

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

interface Validity {
  readonly fromMs: number;
  readonly endsAtMs: number;
}

/**
 * Registers `token_sidecar_tls_certificate_expiry_timestamp_seconds` and `…_not_before_timestamp_seconds`; once per
 * registry.
 */
export function createCertificateMetrics(registry: Registry): CertificateMetrics {
  const labelNames = ['route', 'credential', 'file'];
  const ends = new Gauge({
    name: 'token_sidecar_tls_certificate_expiry_timestamp_seconds',
    help: 'Unix time at which a file of certificates that is in use ends: the first of a chain, the last of a list of authorities.',
    labelNames,
    registers: [registry],
  });
  const begins = new Gauge({
    name: 'token_sidecar_tls_certificate_not_before_timestamp_seconds',
    help: 'Unix time from which the certificate is valid whose end the expiry of its file is.',
    labelNames,
    registers: [registry],
  });
  return {
    inUse(user, file, role, pem) {
      const [first, ...rest] = certificatesIn(pem).flatMap(validityOf);
      if (first === undefined) return;
      const decisive = rest.reduce(
        (one, other) => (other.endsAtMs < one.endsAtMs === (role === 'identity') ? other : one),
        first,
      );
      ends.set({ ...user, file }, decisive.endsAtMs / 1000);
      begins.set({ ...user, file }, decisive.fromMs / 1000);
    },
  };
}

/** Empty where it cannot be told: whoever uses the file says what is wrong with it. */
function validityOf({ validFromDate, validToDate }: X509Certificate): Validity[] {
  const validity = { fromMs: validFromDate.getTime(), endsAtMs: validToDate.getTime() };
  return Object.values(validity).every(Number.isFinite) ? [validity] : [];
}
