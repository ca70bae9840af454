/** What is said of callers that do not trust our certificate: if they are API servers, no pod gets its sidecar. */

import { X509Certificate } from 'node:crypto';
import { TokenBucket } from '../platform/limits/token-bucket.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { CertificateSource } from '../platform/tls/serving-certificate.ts';

/** Anybody can send alerts: the metric counts them all. */
const WARNINGS = { burst: 1, perSecond: 1 / 60 };

/** Warns of an alert, with what an operator has to compare and the caller's address: at most once a minute. */
export function createDistrustWarning(
  certificates: Pick<CertificateSource, 'current'>,
  clock: Clock,
  log: Logger,
): (alert: string, address: string | undefined) => void {
  const warnings = new TokenBucket(WARNINGS);
  return (alert, address) => {
    const shown = certificates.current();
    if (shown === undefined || !warnings.take(clock.monotonicMs())) return;
    const { subjectAltName, issuer } = new X509Certificate(shown.cert);
    log.warn(
      { alert, address, names: subjectAltName ?? 'none', issuer: issuer.replaceAll('\n', ', ') },
      'a caller does not trust the certificate of the webhooks; if it is the API server, no pod gets its sidecar. ' +
        'Compare the caBundle of the webhook configuration with the CA of the certificate (issuer), ' +
        'and its names with SERVICE.NAMESPACE.svc',
    );
  };
}
