import { Counter, Gauge, Histogram, type Registry } from '../platform/prometheus.ts';
import type { CertificateMetrics } from '../platform/tls/serving-certificate.ts';
import type { RefusalCode } from './messages.ts';

/** `aborted`: the requester leaves or does not take the answer. */
export type RequestResult = 'given' | 'aborted' | RefusalCode;

interface BrokerFigures {
  ready(): boolean;
  requestsInFlight(): number;
  openCredentials(): number;
}

export interface BrokerMetrics extends CertificateMetrics {
  /** @param durationSeconds from the head of a request to its answer. */
  answered(result: RequestResult, durationSeconds: number): void;
  connectionDropped(reason: DropReason): void;
  observe(stats: BrokerFigures): void;
}

/** `sent_ahead`: more came before earlier answers were made or read. */
type DropReason = (typeof DROP_REASONS)[number];

const DROP_REASONS = ['displaced', 'sent_ahead', 'handshake'] as const;

export function createBrokerMetrics(registry: Registry): BrokerMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: 'token_sidecar_broker_requests_total',
    help: 'Requests for tokens, by how they ended: given, aborted, or the error of the answer.',
    labelNames: ['result'],
    registers,
  });
  const duration = new Histogram({
    name: 'token_sidecar_broker_request_duration_seconds',
    help: 'Time from the head of a request for a token to its answer.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const dropped = new Counter({
    name: 'token_sidecar_broker_connections_dropped_total',
    help: 'Connections that were ended before a request was answered, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const expiry = new Gauge({
    name: 'token_sidecar_broker_certificate_expiry_timestamp_seconds',
    help: 'Unix time at which the serving certificate ends.',
    registers,
  });
  const reloads = new Counter({
    name: 'token_sidecar_broker_certificate_reload_total',
    help: 'Serving certificates that were offered: loaded, or refused so that the last good one stays.',
    labelNames: ['result'],
    registers,
  });
  let observed: BrokerFigures = {
    ready: () => false,
    requestsInFlight: () => 0,
    openCredentials: () => 0,
  };
  new Gauge({
    name: 'token_sidecar_broker_ready',
    help: '1 while this replica can answer, as /readyz says, 0 otherwise.',
    registers,
    collect() {
      this.set(observed.ready() ? 1 : 0);
    },
  });
  new Gauge({
    name: 'token_sidecar_broker_requests_in_flight',
    help: 'Requests for tokens that are being answered.',
    registers,
    collect() {
      this.set(observed.requestsInFlight());
    },
  });
  new Gauge({
    name: 'token_sidecar_broker_credentials_open',
    help: 'Credentials whose tokens this replica keeps alive: those that were asked for in the last half hour.',
    registers,
    collect() {
      this.set(observed.openCredentials());
    },
  });
  for (const result of ['given', 'invalid_client', 'unauthorized_client', 'temporarily_unavailable']) {
    requests.inc({ result }, 0);
  }
  for (const reason of DROP_REASONS) dropped.inc({ reason }, 0);
  for (const result of ['loaded', 'refused']) reloads.inc({ result }, 0);
  return {
    answered(result, durationSeconds) {
      requests.inc({ result });
      duration.observe(durationSeconds);
    },
    connectionDropped: (reason) => dropped.inc({ reason }),
    observe(stats) {
      observed = stats;
    },
    certificateLoaded(expiresAtMs) {
      expiry.set(expiresAtMs / 1000);
      reloads.inc({ result: 'loaded' });
    },
    certificateRefused: () => reloads.inc({ result: 'refused' }),
  };
}
