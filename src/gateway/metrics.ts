import { Counter, Gauge, type Registry } from '../platform/prometheus.ts';
import type { ServingCertificate } from '../platform/tls/serving-certificate.ts';

export type Decision = 'allowed' | 'unknown' | 'ambiguous' | 'not_allowed' | 'held_back' | 'unverified';

/**
 * - `displaced`: too many had no known caller.
 * - `timeout`: of the handshake.
 * - `held_too_much`: it held most when all together held too much.
 */
type ConnectionResult = 'secured' | 'handshake_failed' | 'timeout' | 'displaced' | 'held_too_much';

type GatewayFile = 'certificate' | 'client_ca';

export interface GatewayMetrics {
  /** @param caller an entry of the policy; undefined if none matches. */
  decided(caller: string | undefined, decision: Decision): void;
  began(caller: string): void;
  ended(caller: string): void;
  connection(result: ConnectionResult): void;
  /** From now on. */
  certificateShown(certificate: Pick<ServingCertificate, 'startsAtMs' | 'expiresAtMs'>): void;
  fileReloaded(file: GatewayFile, result: 'loaded' | 'refused'): void;
  /** The series of other names end. */
  keepCallers(names: ReadonlySet<string>): void;
}

const NO_CALLER = 'none';
const DECISIONS: readonly Decision[] = [
  'allowed',
  'unknown',
  'ambiguous',
  'not_allowed',
  'held_back',
  'unverified',
];

export function createGatewayMetrics(registry: Registry, remembered: () => number): GatewayMetrics {
  const registers = [registry];
  const inFlight = new Map<string, number>();
  const requests = new Counter({
    name: 'token_sidecar_gateway_requests_total',
    help: 'Requests to the gateway, by the entry of their caller and what was decided; none if no entry matches.',
    labelNames: ['caller', 'decision'] as const,
    registers,
  });
  const underWay = new Gauge({
    name: 'token_sidecar_gateway_requests_in_flight',
    help: 'Requests that were let in and have not ended, by the entry of their caller.',
    labelNames: ['caller'] as const,
    registers,
    collect() {
      for (const [caller, count] of inFlight) this.set({ caller }, count);
    },
  });
  new Gauge({
    name: 'token_sidecar_gateway_callers',
    help: 'Callers that are remembered for their bounds.',
    registers,
    collect() {
      this.set(remembered());
    },
  });
  const connections = new Counter({
    name: 'token_sidecar_gateway_connections_total',
    help: 'Connections to the gateway, by what became of their handshake, those displaced before they showed a caller, and those ended because they held too much.',
    labelNames: ['result'] as const,
    registers,
  });
  const expiry = new Gauge({
    name: 'token_sidecar_gateway_certificate_expiry_timestamp_seconds',
    help: 'Unix time at which the certificate of the gateway ends.',
    registers,
  });
  const beginning = new Gauge({
    name: 'token_sidecar_gateway_certificate_not_before_timestamp_seconds',
    help: 'Unix time from which on the certificate of the gateway is valid.',
    registers,
  });
  const reloads = new Counter({
    name: 'token_sidecar_gateway_file_reload_total',
    help: 'Files of the gateway that were read: loaded, or refused so that the last good one stays.',
    labelNames: ['file', 'result'] as const,
    registers,
  });
  for (const decision of ['unknown', 'ambiguous', 'unverified'] as const)
    requests.inc({ caller: NO_CALLER, decision }, 0);
  for (const result of ['secured', 'handshake_failed', 'timeout', 'displaced', 'held_too_much'] as const) {
    connections.inc({ result }, 0);
  }
  for (const file of ['certificate', 'client_ca'] as const) {
    for (const result of ['loaded', 'refused'] as const) reloads.inc({ file, result }, 0);
  }
  /** At the last look. */
  let names: ReadonlySet<string> = new Set();

  return {
    decided: (caller = NO_CALLER, decision) => requests.inc({ caller, decision }),
    began: (caller) => void inFlight.set(caller, (inFlight.get(caller) ?? 0) + 1),
    ended(caller) {
      const left = (inFlight.get(caller) ?? 0) - 1;
      if (left > 0 || names.has(caller)) inFlight.set(caller, Math.max(0, left));
      else forgetInFlight(caller);
    },
    connection: (result) => connections.inc({ result }),
    certificateShown({ startsAtMs, expiresAtMs }) {
      beginning.set(startsAtMs / 1000);
      expiry.set(expiresAtMs / 1000);
    },
    fileReloaded: (file, result) => reloads.inc({ file, result }),
    keepCallers(kept) {
      for (const caller of names) {
        if (kept.has(caller)) continue;
        for (const decision of DECISIONS) requests.remove({ caller, decision });
        if ((inFlight.get(caller) ?? 0) === 0) forgetInFlight(caller);
      }
      for (const caller of kept) {
        if (names.has(caller)) continue;
        requests.inc({ caller, decision: 'allowed' }, 0);
        inFlight.set(caller, inFlight.get(caller) ?? 0);
      }
      names = kept;
    },
  };

  function forgetInFlight(caller: string): void {
    inFlight.delete(caller);
    underWay.remove({ caller });
  }
}
