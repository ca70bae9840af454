import type { Logger } from '../log/logger.ts';
import type { Registry } from '../prometheus.ts';
import { type CertificateMetrics, createCertificateMetrics } from './certificate-metrics.ts';

/** A file whose validity cannot be read loses its series, and the log says so. */
export function loggedCertificateMetrics(registry: Registry, log: Logger): CertificateMetrics {
  return createCertificateMetrics(registry, (err, user, file) =>
    log.error({ ...user, file, err }, 'how long a file of certificates is valid could not be read'),
  );
}
