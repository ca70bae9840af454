import { Counter, Gauge, Histogram, type Registry } from '../platform/prometheus.ts';
import type { CertificateMetrics } from '../platform/tls/serving-certificate.ts';

type AdmissionResult = 'injected' | 'skipped' | 'rejected' | 'error';

export interface InjectorMetrics extends CertificateMetrics {
  /** @param reason see docs/reference/injector.md. */
  admitted(result: AdmissionResult, reason: string, durationSeconds: number): void;
  connectionDropped(reason: DropReason): void;
  podsWithoutSidecar(count: number): void;
  evicted(result: EvictionResult): void;
}

/** `untrusted`: the caller did not trust the certificate. `handshake`: no TLS, or no client certificate of a trusted CA. */
type DropReason = (typeof DROP_REASONS)[number];

const DROP_REASONS = ['displaced', 'sent_ahead', 'handshake', 'untrusted', 'client_name'] as const;

/** `blocked`: a PodDisruptionBudget asked to wait. */
type EvictionResult = 'evicted' | 'blocked' | 'failed';

export function createInjectorMetrics(registry: Registry): InjectorMetrics {
  const registers = [registry];
  const admissions = new Counter({
    name: 'token_sidecar_injector_admissions_total',
    help: 'Admission reviews, by outcome.',
    labelNames: ['result', 'reason'],
    registers,
  });
  const duration = new Histogram({
    name: 'token_sidecar_injector_admission_duration_seconds',
    help: 'Time from an admission review to its answer.',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers,
  });
  const expiry = new Gauge({
    name: 'token_sidecar_injector_certificate_expiry_timestamp_seconds',
    help: 'Unix time at which the serving certificate ends.',
    registers,
  });
  const reloads = new Counter({
    name: 'token_sidecar_injector_certificate_reload_total',
    help: 'Serving certificates that were offered: loaded, or refused so that the last good one stays.',
    labelNames: ['result'],
    registers,
  });
  const dropped = new Counter({
    name: 'token_sidecar_injector_connections_dropped_total',
    help: 'Connections to the webhooks that were ended before a review was answered, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const withoutSidecar = new Gauge({
    name: 'token_sidecar_injector_pods_without_sidecar',
    help: 'Pods that ask for the sidecar and run without it, as the replica that watches pods knows them; 0 on the others.',
    registers,
  });
  const evictions = new Counter({
    name: 'token_sidecar_injector_evictions_total',
    help: 'Evictions of pods without their sidecar: done, blocked by a PodDisruptionBudget, or failed.',
    labelNames: ['result'],
    registers,
  });
  admissions.inc({ result: 'injected', reason: 'native' }, 0);
  admissions.inc({ result: 'error', reason: 'internal' }, 0);
  for (const result of ['loaded', 'refused']) reloads.inc({ result }, 0);
  for (const reason of DROP_REASONS) dropped.inc({ reason }, 0);
  for (const result of ['evicted', 'blocked', 'failed']) evictions.inc({ result }, 0);
  return {
    admitted(result, reason, durationSeconds) {
      admissions.inc({ result, reason });
      duration.observe(durationSeconds);
    },
    certificateLoaded(expiresAtMs) {
      expiry.set(expiresAtMs / 1000);
      reloads.inc({ result: 'loaded' });
    },
    certificateRefused: () => reloads.inc({ result: 'refused' }),
    connectionDropped: (reason) => dropped.inc({ reason }),
    podsWithoutSidecar: (count) => withoutSidecar.set(count),
    evicted: (result) => evictions.inc({ result }),
  };
}
