import type { Registry } from '../../src/platform/prometheus.ts';
import {
  type CertificateMetrics,
  createCertificateMetrics,
} from '../../src/platform/x509/certificate-metrics.ts';
import { createProxyMetrics, type ProxyMetrics } from '../../src/proxy/metrics.ts';

/** Registers the metrics of certificates; a file that cannot be read fails the test. */
export function strictCertificateMetrics(registry: Registry): CertificateMetrics {
  return createCertificateMetrics(registry, (error) => void Promise.reject(error));
}

/** Registers the proxy's metrics, with those of certificates. */
export function testProxyMetrics(registry: Registry): ProxyMetrics {
  return createProxyMetrics(registry, strictCertificateMetrics(registry));
}
