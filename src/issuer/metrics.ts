import { Counter, Gauge, Histogram, type Registry } from '../platform/prometheus.ts';
import { PROOF_FAULTS, type ProofFault } from './dpop-proof.ts';
import type { RefusalCode } from './refusal.ts';

type TokenResult =
  | 'issued'
  | RefusalCode
  | 'not_found'
  | 'method_not_allowed'
  /** Not HTTP/1.1, or late. */
  | 'malformed'
  /** The caller left before the answer. */
  | 'aborted';

type ReloadSource = 'clients' | 'signing_key' | 'published_keys';

export interface IssuerMetrics {
  requested(result: TokenResult, durationSeconds: number): void;
  reloaded(source: ReloadSource, result: 'success' | 'failure'): void;
  connectionDropped(reason: DropReason): void;
  proofRefused(reason: ProofFault['reason']): void;
  clients(count: number): void;
}

/** `displaced`: there were too many. `sent_ahead`: earlier answers were not made, or not read. */
type DropReason = (typeof DROP_REASONS)[number];

const DROP_REASONS = ['displaced', 'sent_ahead'] as const;

export function createIssuerMetrics(registry: Registry): IssuerMetrics {
  const tokens = new Counter({
    name: 'token_sidecar_issuer_tokens_total',
    help: 'Requests to the token listener, by how they ended.',
    labelNames: ['result'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'token_sidecar_issuer_request_duration_seconds',
    help: 'Time from the head of a token request to its answer.',
    labelNames: ['result'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  });
  const dropped = new Counter({
    name: 'token_sidecar_issuer_connections_dropped_total',
    help: 'Connections to the token listener that were ended because of a bound, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  });
  const proofs = new Counter({
    name: 'token_sidecar_issuer_dpop_proofs_refused_total',
    help: 'DPoP proofs that were refused, and demanded ones that were missing, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  });
  const reloads = new Counter({
    name: 'token_sidecar_issuer_reload_total',
    help: 'Changes of the registered clients, of the signing key and of the published keys, by whether they could be used.',
    labelNames: ['source', 'result'],
    registers: [registry],
  });
  const clients = new Gauge({
    name: 'token_sidecar_issuer_clients',
    help: 'Registered clients.',
    registers: [registry],
  });
  // So that the first event shows as an increase.
  tokens.inc({ result: 'issued' }, 0);
  for (const reason of DROP_REASONS) dropped.inc({ reason }, 0);
  for (const reason of PROOF_FAULTS) proofs.inc({ reason }, 0);
  return {
    requested(result, durationSeconds) {
      tokens.inc({ result });
      duration.observe({ result }, durationSeconds);
    },
    reloaded: (source, result) => reloads.inc({ source, result }),
    connectionDropped: (reason) => dropped.inc({ reason }),
    proofRefused: (reason) => proofs.inc({ reason }),
    clients: (count) => clients.set(count),
  };
}
