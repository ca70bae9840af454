/**
 * The one list of the program's metrics. Dashboard, rules and alerts name metrics through this list alone, so that one
 * renamed in the program cannot live on in a query.
 */

export interface Metric {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** The subcommand that exports it; the gateway has those of the proxy, too. */
  readonly program: 'every' | 'proxy' | 'gateway' | 'injector' | 'issuer' | 'broker' | 'broker and gateway';
  readonly labels: readonly string[];
  readonly meaning: string;
}

export const METRIC_PREFIX = 'token_sidecar_';

/** By name without the prefix. */
export const METRICS = {
  build_info: {
    type: 'gauge',
    program: 'every',
    labels: ['version', 'revision', 'node_version'],
    meaning: 'Always 1; what runs.',
  },
  token_expiry_timestamp_seconds: {
    type: 'gauge',
    program: 'proxy',
    labels: ['credential'],
    meaning: 'Unix time at which the held token ends.',
  },
  token_renewal_timestamp_seconds: {
    type: 'gauge',
    program: 'proxy',
    labels: ['credential'],
    meaning: 'Unix time of the next planned grant.',
  },
  token_ready: {
    type: 'gauge',
    program: 'proxy',
    labels: ['credential'],
    meaning: '1 while a token that may be sent is held, 0 otherwise.',
  },
  credential_required: {
    type: 'gauge',
    program: 'proxy',
    labels: ['credential'],
    meaning: '1 where start and readiness wait for a token, 0 where the credential has `required: false`.',
  },
  token_refresh_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['credential', 'result', 'reason'],
    meaning: 'Grants requested, by outcome and by what caused them.',
  },
  token_refresh_duration_seconds: {
    type: 'histogram',
    program: 'proxy',
    labels: ['credential', 'result'],
    meaning: 'Time from the request for a token to the verdict on the answer.',
  },
  token_refresh_consecutive_failures: {
    type: 'gauge',
    program: 'proxy',
    labels: ['credential'],
    meaning: 'Grants that failed since the last that succeeded.',
  },
  credentials_reload_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['credential', 'result'],
    meaning: 'Changes of the mounted credentials, by what was found.',
  },
  credentials_loaded_timestamp_seconds: {
    type: 'gauge',
    program: 'proxy',
    labels: ['credential'],
    meaning: 'Unix time at which the credentials in use were read.',
  },
  credentials_watched: {
    type: 'gauge',
    program: 'proxy',
    labels: ['credential'],
    meaning: '1 while the system tells of changes of the mounted credentials, 0 while they are only polled.',
  },
  dpop_proofs_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['credential'],
    meaning: 'Proofs made for tokens that are bound to a key.',
  },
  dpop_nonces_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['credential'],
    meaning: 'Nonces that servers gave for the next proofs.',
  },
  dpop_nonce_repeats_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['credential'],
    meaning: 'Requests sent again because the server wanted its nonce in the proof.',
  },
  dpop_refused_proofs_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['credential'],
    meaning: 'Answers of upstreams that refuse the proof, and not the token.',
  },
  credentials_usable: {
    type: 'gauge',
    program: 'proxy',
    labels: ['credential'],
    meaning: '1 while the mounted credentials can be used as they are.',
  },
  credentials_previous_in_use: {
    type: 'gauge',
    program: 'proxy',
    labels: ['credential'],
    meaning:
      '1 while the held token was granted to the credentials before the newest, because the provider rejects these, 0 otherwise.',
  },
  token_file_current: {
    type: 'gauge',
    program: 'proxy',
    labels: ['credential'],
    meaning:
      '1 while the file of `output.file` holds the token in use, or is absent because there is none; 0 while it could not be written or removed.',
  },
  tls_certificate_expiry_timestamp_seconds: {
    type: 'gauge',
    program: 'proxy',
    labels: ['route', 'credential', 'file'],
    meaning: 'Unix time at which a file of certificates that is in use ends.',
  },
  tls_certificate_not_before_timestamp_seconds: {
    type: 'gauge',
    program: 'proxy',
    labels: ['route', 'credential', 'file'],
    meaning: 'Unix time from which on the certificate that ends at that time is valid.',
  },
  log_lines_dropped_total: {
    type: 'counter',
    program: 'every',
    labels: ['reason'],
    meaning: 'Log lines that were not printed: the output took no more, or there were many like them.',
  },
  admin_connections_dropped_total: {
    type: 'counter',
    program: 'every',
    labels: [],
    meaning: 'Connections to the admin listener that were refused.',
  },
  proxy_requests_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['route', 'method', 'code'],
    meaning: 'Requests answered.',
  },
  proxy_requests_by_protocol_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['route', 'protocol', 'upstream_protocol'],
    meaning: 'Requests answered, by the versions of HTTP that they came and left by.',
  },
  proxy_grpc_calls_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['route', 'grpc_status'],
    meaning: 'gRPC calls answered, by their status.',
  },
  proxy_http2_abuse_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['kind'],
    meaning: 'HTTP/2 connections of the app that were ended because they asked for more than they may.',
  },
  proxy_redirected_connections_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['result'],
    meaning: 'Connections that the kernel redirected to the sidecar, by what became of them.',
  },
  proxy_request_duration_seconds: {
    type: 'histogram',
    program: 'proxy',
    labels: ['route', 'code'],
    meaning: 'Time from the head of a request to the end of its answer, by the class of its status.',
  },
  proxy_upstream_duration_seconds: {
    type: 'histogram',
    program: 'proxy',
    labels: ['route'],
    meaning: 'Time from the sending of a request to the head of its answer.',
  },
  proxy_upstream_connections_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['route'],
    meaning: 'Connections to upstreams that were opened.',
  },
  proxy_upstream_tls_handshakes_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['route', 'resumed'],
    meaning: 'TLS handshakes with upstreams that succeeded.',
  },
  proxy_requests_in_flight: {
    type: 'gauge',
    program: 'proxy',
    labels: ['route'],
    meaning: 'Requests begun and not yet answered.',
  },
  proxy_errors_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['route', 'error'],
    meaning: 'Requests that the proxy itself answered with an error.',
  },
  proxy_upstream_unauthorized_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['route'],
    meaning: 'Answers 401 from the upstream.',
  },
  proxy_replays_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['route', 'result'],
    meaning: 'Requests sent again with a renewed token.',
  },
  config_generation: {
    type: 'gauge',
    program: 'proxy',
    labels: [],
    meaning: 'Configurations that have been in use, the present one included.',
  },
  config_applied_timestamp_seconds: {
    type: 'gauge',
    program: 'proxy',
    labels: [],
    meaning: 'Unix time at which the configuration in use took effect.',
  },
  config_last_reload_successful: {
    type: 'gauge',
    program: 'proxy',
    labels: [],
    meaning: '1 while what the configuration file says is in use, 0 while it is not.',
  },
  config_reload_total: {
    type: 'counter',
    program: 'proxy',
    labels: ['result'],
    meaning: 'Changes of the configuration file and requests to read it anew, by what came of them.',
  },
  gateway_requests_total: {
    type: 'counter',
    program: 'gateway',
    labels: ['caller', 'decision'],
    meaning: 'Requests to the gateway, by the entry of their caller and what was decided.',
  },
  gateway_requests_in_flight: {
    type: 'gauge',
    program: 'gateway',
    labels: ['caller'],
    meaning: 'Requests that were let in and have not ended, by the entry of their caller.',
  },
  gateway_callers: {
    type: 'gauge',
    program: 'gateway',
    labels: [],
    meaning: 'Callers that are remembered for their bounds.',
  },
  gateway_connections_total: {
    type: 'counter',
    program: 'gateway',
    labels: ['result'],
    meaning:
      'Connections to the gateway, by what became of them before they showed a caller, and those that held too much.',
  },
  gateway_certificate_expiry_timestamp_seconds: {
    type: 'gauge',
    program: 'gateway',
    labels: [],
    meaning: 'Unix time at which the serving certificate ends.',
  },
  gateway_certificate_not_before_timestamp_seconds: {
    type: 'gauge',
    program: 'gateway',
    labels: [],
    meaning: 'Unix time from which on the serving certificate is valid.',
  },
  gateway_file_reload_total: {
    type: 'counter',
    program: 'gateway',
    labels: ['file', 'result'],
    meaning: 'Files of the gateway that were read: loaded, or refused so that the last good one stays.',
  },
  injector_admissions_total: {
    type: 'counter',
    program: 'injector',
    labels: ['result', 'reason'],
    meaning: 'Admission reviews, by outcome.',
  },
  injector_admission_duration_seconds: {
    type: 'histogram',
    program: 'injector',
    labels: [],
    meaning: 'Time from an admission review to its answer.',
  },
  injector_certificate_expiry_timestamp_seconds: {
    type: 'gauge',
    program: 'injector',
    labels: [],
    meaning: 'Unix time at which the serving certificate ends; 0 while there is none.',
  },
  injector_certificate_reload_total: {
    type: 'counter',
    program: 'injector',
    labels: ['result'],
    meaning: 'Serving certificates that were offered: loaded, or refused so that the last good one stays.',
  },
  injector_connections_dropped_total: {
    type: 'counter',
    program: 'injector',
    labels: ['reason'],
    meaning: 'Connections to the webhooks that were ended before a review was answered.',
  },
  injector_pods_without_sidecar: {
    type: 'gauge',
    program: 'injector',
    labels: [],
    meaning:
      'Pods that ask for the sidecar and run without it, as the replica that watches pods knows them; 0 on the others.',
  },
  injector_evictions_total: {
    type: 'counter',
    program: 'injector',
    labels: ['result'],
    meaning: 'Evictions of pods without their sidecar: done, blocked by a PodDisruptionBudget, or failed.',
  },
  broker_ready: {
    type: 'gauge',
    program: 'broker',
    labels: [],
    meaning: '1 while a replica can answer, as `/readyz` says, 0 otherwise.',
  },
  broker_requests_total: {
    type: 'counter',
    program: 'broker',
    labels: ['result'],
    meaning: 'Requests for tokens, by how they ended: given, aborted, or the error of the answer.',
  },
  broker_request_duration_seconds: {
    type: 'histogram',
    program: 'broker',
    labels: [],
    meaning: 'Time from the head of a request for a token to its answer.',
  },
  broker_requests_in_flight: {
    type: 'gauge',
    program: 'broker',
    labels: [],
    meaning: 'Requests for tokens that are being answered.',
  },
  broker_credentials_open: {
    type: 'gauge',
    program: 'broker',
    labels: [],
    meaning: 'Credentials whose tokens a replica keeps alive.',
  },
  broker_cache_requests_total: {
    type: 'counter',
    program: 'broker',
    labels: ['result'],
    meaning: 'Looks into the token cache before a grant, by how they ended. Only with a cache.',
  },
  broker_cache_stores_total: {
    type: 'counter',
    program: 'broker',
    labels: ['result'],
    meaning: 'Tokens that were to be written into the token cache, by whether they were. Only with a cache.',
  },
  broker_cache_failures_total: {
    type: 'counter',
    program: 'broker',
    labels: ['reason'],
    meaning: 'Connections to the token cache that failed or ended, by reason. Only with a cache.',
  },
  broker_cache_connected: {
    type: 'gauge',
    program: 'broker',
    labels: [],
    meaning: '1 while the token cache can be asked, 0 while each replica asks by itself. Only with a cache.',
  },
  broker_connections_dropped_total: {
    type: 'counter',
    program: 'broker',
    labels: ['reason'],
    meaning: 'Connections that were ended before a request was answered.',
  },
  broker_certificate_expiry_timestamp_seconds: {
    type: 'gauge',
    program: 'broker',
    labels: [],
    meaning: 'Unix time at which the serving certificate ends.',
  },
  broker_certificate_reload_total: {
    type: 'counter',
    program: 'broker',
    labels: ['result'],
    meaning: 'Serving certificates that were offered: loaded, or refused so that the last good one stays.',
  },
  caller_verdicts_total: {
    type: 'counter',
    program: 'broker and gateway',
    labels: ['result', 'reason'],
    meaning: 'Service account tokens of callers, by what became of them.',
  },
  caller_token_reviews_total: {
    type: 'counter',
    program: 'broker and gateway',
    labels: ['result'],
    meaning: 'TokenReviews that were asked of the API server.',
  },
  caller_token_review_duration_seconds: {
    type: 'histogram',
    program: 'broker and gateway',
    labels: [],
    meaning: 'Time of a TokenReview, answered or failed.',
  },
  issuer_tokens_total: {
    type: 'counter',
    program: 'issuer',
    labels: ['result'],
    meaning: 'Requests to the token listener, by how they ended.',
  },
  issuer_request_duration_seconds: {
    type: 'histogram',
    program: 'issuer',
    labels: ['result'],
    meaning: 'Time from the head of a token request to its answer.',
  },
  issuer_connections_dropped_total: {
    type: 'counter',
    program: 'issuer',
    labels: ['reason'],
    meaning: 'Connections to the token listener that were ended because of a bound.',
  },
  issuer_dpop_proofs_refused_total: {
    type: 'counter',
    program: 'issuer',
    labels: ['reason'],
    meaning: 'DPoP proofs that were refused, and demanded ones that were missing.',
  },
  issuer_reload_total: {
    type: 'counter',
    program: 'issuer',
    labels: ['source', 'result'],
    meaning:
      'Changes of the registered clients, of the signing key and of the published keys, by whether they could be used.',
  },
  issuer_clients: {
    type: 'gauge',
    program: 'issuer',
    labels: [],
    meaning: 'Registered clients.',
  },
} as const satisfies Record<string, Metric>;

export type MetricName = keyof typeof METRICS;

type NameOfType<Type extends Metric['type']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['type'] extends Type ? Name : never;
}[MetricName];

/** A gauge or counter as a PromQL selector; `matchers` go between the braces. */
export function series(name: NameOfType<'gauge' | 'counter'>, matchers = ''): string {
  return `${METRIC_PREFIX}${name}${matchers === '' ? '' : `{${matchers}}`}`;
}

/** The buckets of a histogram as a PromQL selector; `matchers` go between the braces. */
export function buckets(name: NameOfType<'histogram'>, matchers = ''): string {
  return `${METRIC_PREFIX}${name}_bucket${matchers === '' ? '' : `{${matchers}}`}`;
}

/** The sum or the count of a histogram as a PromQL selector; `matchers` go between the braces. */
export function totals(name: NameOfType<'histogram'>, part: 'sum' | 'count', matchers = ''): string {
  return `${METRIC_PREFIX}${name}_${part}${matchers === '' ? '' : `{${matchers}}`}`;
}

/** Every series name that the program exports: a histogram's three, otherwise the metric's own. */
export function exportedSeriesNames(): Set<string> {
  return new Set(
    Object.entries(METRICS).flatMap(([name, { type }]) =>
      type === 'histogram'
        ? ['_bucket', '_sum', '_count'].map((suffix) => `${METRIC_PREFIX}${name}${suffix}`)
        : [`${METRIC_PREFIX}${name}`],
    ),
  );
}
