import { Counter, Gauge, Histogram, type Registry } from '../platform/prometheus.ts';
import type { ProofReport } from './dpop/proof-maker.ts';
import type { TokenResponse } from './provider/token-response.ts';
import type { TokenRequestReason } from './token-state.ts';

export interface TokenMetrics {
  /** `durationMs` runs from the request to the verdict. */
  refreshed(
    credential: string,
    result: TokenResponse['result'],
    reason: TokenRequestReason,
    durationMs: number,
  ): void;
  observe(credential: string, snapshot: () => TokenGauges): void;
  forget(credential: string): void;
}

/** Wall instants in ms since the epoch. */
interface TokenGauges {
  readonly required: boolean;
  readonly ready: boolean;
  readonly expiresAtMs: number | undefined;
  readonly renewalAtMs: number | undefined;
  readonly consecutiveFailures: number;
  readonly credentials: {
    readonly state: string;
    readonly previousInUse: boolean;
  };
  /** Absent where tokens are bound to no key. */
  readonly proofs?: ProofReport | undefined;
}

export function createTokenMetrics(registry: Registry): TokenMetrics {
  const observed = new Map<string, () => TokenGauges>();
  const registers = [registry];

  function gauge(name: string, help: string, read: (gauges: TokenGauges) => number | undefined): void {
    new Gauge({
      name: `token_sidecar_${name}`,
      help,
      labelNames: ['credential'],
      registers,
      collect() {
        for (const [credential, snapshot] of observed) {
          const value = read(snapshot());
          if (value === undefined) this.remove({ credential });
          else this.set({ credential }, value);
        }
      },
    });
  }

  gauge('token_ready', '1 while a token that may be sent is held, 0 otherwise.', ({ ready }) =>
    ready ? 1 : 0,
  );
  gauge(
    'credential_required',
    '1 if start and readiness wait for a token, 0 if the credential has `required: false`.',
    ({ required }) => (required ? 1 : 0),
  );
  gauge(
    'token_expiry_timestamp_seconds',
    'Unix time at which the held token ends.',
    ({ expiresAtMs }) => expiresAtMs && expiresAtMs / 1000,
  );
  gauge(
    'token_renewal_timestamp_seconds',
    'Unix time of the next planned grant.',
    ({ renewalAtMs }) => renewalAtMs && renewalAtMs / 1000,
  );
  gauge(
    'token_refresh_consecutive_failures',
    'Grants that failed since the last that succeeded.',
    ({ consecutiveFailures }) => consecutiveFailures,
  );

  gauge(
    'credentials_usable',
    '1 while the mounted credentials can be used as they are, 0 while they cannot: the last good ones, if any, stay in use.',
    ({ credentials }) => (credentials.state === 'loaded' ? 1 : 0),
  );
  gauge(
    'credentials_previous_in_use',
    '1 while the held token was granted to the credentials before the newest, because the provider rejects these, 0 otherwise.',
    ({ credentials }) => (credentials.previousInUse ? 1 : 0),
  );

  function proofCounter(name: string, help: string, read: (proofs: ProofReport) => number): void {
    new Counter({
      name: `token_sidecar_dpop_${name}_total`,
      help,
      labelNames: ['credential'],
      registers,
      collect() {
        this.reset();
        for (const [credential, snapshot] of observed) {
          const { proofs } = snapshot();
          if (proofs !== undefined) this.inc({ credential }, read(proofs));
        }
      },
    });
  }

  proofCounter(
    'proofs',
    'Proofs made for tokens that are bound to a key, one for each request and grant.',
    ({ made }) => made,
  );
  proofCounter('nonces', 'Nonces that servers gave for the next proofs.', ({ noncesTaken }) => noncesTaken);
  proofCounter(
    'nonce_repeats',
    'Requests sent again because the server wanted its nonce in the proof.',
    ({ noncesWanted }) => noncesWanted,
  );
  proofCounter(
    'refused_proofs',
    'Answers of upstreams that refuse the proof, and not the token.',
    ({ refused }) => refused,
  );

  const refreshes = new Counter({
    name: 'token_sidecar_token_refresh_total',
    help: 'Grants requested, by outcome and by what caused them.',
    labelNames: ['credential', 'result', 'reason'],
    registers,
  });
  const durations = new Histogram({
    name: 'token_sidecar_token_refresh_duration_seconds',
    help: 'Time from the request for a token to the verdict on the answer.',
    labelNames: ['credential', 'result'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });

  return {
    refreshed(credential, result, reason, durationMs) {
      refreshes.inc({ credential, result, reason });
      durations.observe({ credential, result }, durationMs / 1000);
    },
    observe: (credential, snapshot) => observed.set(credential, snapshot),
    forget: (credential) => observed.delete(credential),
  };
}
