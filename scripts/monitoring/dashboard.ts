/** The Grafana dashboard: the fleet first, then the proxy, one pod, what the processes take, the injector, the issuer, the broker and the gateway. */

import { BROKER_JOB } from './broker-rules.ts';
import {
  about,
  DATASOURCE,
  heatmap,
  layOut,
  lines,
  type Query,
  type Row,
  stat,
  table,
} from './dashboard-panels.ts';
import { INJECTOR_JOB } from './injector-rules.ts';
import { buckets, series, totals } from './metrics.ts';

/** Of metrics that are neither of a credential nor of a route. */
const NAMESPACE = 'namespace=~"$namespace"';
const FLEET = 'namespace=~"$namespace", credential=~"$credential"';
const ROUTES = 'namespace=~"$namespace", route=~"$route"';
const POD = 'namespace=~"$namespace", pod=~"$pod"';

const remaining = `${series('token_expiry_timestamp_seconds', FLEET)} - time()`;

/** How many tokens have between `from` and `to` seconds left. */
function tokensWith(from: number | undefined, to: number | undefined, legend: string): Query {
  const bounds = `${from === undefined ? '' : ` >= ${from}`}${to === undefined ? '' : ` < ${to}`}`;
  return { expr: `count((${remaining})${bounds}) or on () vector(0)`, legend };
}

/** What a process exporter says of anything, of those that run this program alone. */
function ofProcess(name: string): string {
  return `${name}{${POD}} and on (job, instance) ${series('build_info')}`;
}

/** Who judges callers is a broker or a gateway. */
function ofBroker(expr: string): string {
  return `${expr} and on (job, instance) ${series('broker_ready')}`;
}

function ofGateway(expr: string): string {
  return `${expr} and on (job, instance) ${series('gateway_callers')}`;
}

/** Quiet while there is nothing: one line at zero in place of one for each route or pod. */
function orZero(expr: string): string {
  return `${expr} > 0 or on () vector(0)`;
}

const ALWAYS_GREEN = [{ from: null, color: 'green' }] as const;
const ANY_IS_BAD = [
  { from: null, color: 'green' },
  { from: 1, color: 'red' },
] as const;
const MAX_IS_GOOD = [
  { from: null, color: 'red' },
  { from: 0.9, color: 'orange' },
  { from: 0.99, color: 'green' },
] as const;

const CERTIFICATE_END = series('tls_certificate_expiry_timestamp_seconds', NAMESPACE);
const CERTIFICATE_BEGIN = series('tls_certificate_not_before_timestamp_seconds', NAMESPACE);

const fleet: Row = {
  title: 'Fleet',
  collapsed: false,
  panels: [
    about(
      stat(
        'Sidecars',
        'Pods with a sidecar that is scraped.',
        'short',
        {
          expr: `count(count by (namespace, pod) (${series('token_ready', FLEET)} unless on (job, instance) ${series('broker_ready')} unless on (job, instance) ${series('gateway_callers')}))`,
        },
        ALWAYS_GREEN,
      ),
      'TokenSidecarDown',
      'TokenSidecarAbsent',
      'TokenSidecarNotInjected',
    ),
    about(
      stat(
        'Credentials with a token',
        'Share of the credentials that hold a token which may be sent, without those that are not required.',
        'percentunit',
        {
          expr: `avg(${series('token_ready', FLEET)} unless on (namespace, pod, credential) ${series('credential_required', FLEET)} == 0)`,
        },
        MAX_IS_GOOD,
      ),
      'TokenSidecarFleetWithoutTokens',
      'TokenSidecarNamespaceWithoutTokens',
      'TokenSidecarTokenUnavailable',
    ),
    stat(
      'Refresh success',
      'Share of the grants of the last 30 minutes that succeeded.',
      'percentunit',
      {
        expr: `sum(increase(${series('token_refresh_total', `${FLEET}, result="success"`)}[30m])) / (sum(increase(${series('token_refresh_total', FLEET)}[30m])) > 0)`,
      },
      MAX_IS_GOOD,
    ),
    about(
      stat(
        'Failing credentials',
        'Credentials of pods whose last grant failed.',
        'short',
        {
          expr: `count(${series('token_refresh_consecutive_failures', FLEET)} > 0) or on () vector(0)`,
        },
        ANY_IS_BAD,
      ),
      'TokenSidecarRefreshFailing',
      'TokenSidecarCredentialsRejected',
    ),
    about(
      stat(
        'Next token to end',
        'Time left to the token that ends first.',
        's',
        {
          expr: `min(${remaining})`,
        },
        [
          { from: null, color: 'red' },
          { from: 5, color: 'green' },
        ],
      ),
      'TokenSidecarTokenExpiring',
    ),
    stat(
      'Upstream 401s',
      'Share of the requests of the last 5 minutes that the upstream answered with 401.',
      'percentunit',
      {
        expr: `sum(rate(${series('proxy_upstream_unauthorized_total', NAMESPACE)}[5m])) / (sum(rate(${series('proxy_requests_total', NAMESPACE)}[5m])) > 0) or on () vector(0)`,
      },
      [
        { from: null, color: 'green' },
        { from: 0.05, color: 'red' },
      ],
    ),
    lines(
      'Tokens by time to expiry',
      'How many tokens have how long to go. A healthy fleet never has one in the first band.',
      'short',
      [
        tokensWith(undefined, 0, 'ended'),
        tokensWith(0, 30, '< 30 s'),
        tokensWith(30, 60, '30 s – 1 min'),
        tokensWith(60, 300, '1 – 5 min'),
        tokensWith(300, 900, '5 – 15 min'),
        tokensWith(900, 3600, '15 min – 1 h'),
        tokensWith(3600, undefined, '> 1 h'),
      ],
      { stacked: true },
    ),
    lines(
      'Grants by result',
      'Requests to the token endpoint.',
      'ops',
      [
        {
          expr: `sum by (result) (rate(${series('token_refresh_total', FLEET)}[$__rate_interval]))`,
          legend: '{{result}}',
        },
      ],
      { stacked: true },
    ),
    heatmap('Grant latency', 'Time from the request for a token to the verdict on the answer.', {
      expr: `sum by (le) (increase(${buckets('token_refresh_duration_seconds', FLEET)}[$__rate_interval]))`,
    }),
    lines(
      'Grants by reason',
      'What caused them: a steady fleet shows scheduled ones, and startup ones during rollouts.',
      'ops',
      [
        {
          expr: `sum by (reason) (rate(${series('token_refresh_total', FLEET)}[$__rate_interval]))`,
          legend: '{{reason}}',
        },
      ],
      { stacked: true },
    ),
    about(
      table('Failing pods', 'Grants that failed in a row, the worst first.', 'short', 'Failures in a row', {
        expr: `topk(20, sum by (namespace, pod, credential) (${series('token_refresh_consecutive_failures', FLEET)}) > 0)`,
      }),
      'TokenSidecarRefreshFailing',
      'TokenSidecarCredentialsRejected',
      'TokenSidecarTokenUnavailable',
    ),
    table('Tokens that end first', 'Time left, the least first.', 's', 'Time left', {
      expr: `bottomk(20, min by (namespace, pod, credential) (${remaining}))`,
    }),
    lines('Rotations', 'Changes of the mounted credentials, by what was found.', 'short', [
      {
        expr: orZero(
          `sum by (result) (increase(${series('credentials_reload_total', FLEET)}[$__rate_interval]))`,
        ),
        legend: '{{result}}',
      },
    ]),
    about(
      table(
        'Certificates that end first',
        'Files of certificates in use, the least left first.',
        's',
        'Time left',
        {
          expr: `bottomk(20, min by (namespace, route, credential, file) (${CERTIFICATE_END}) - time())`,
        },
      ),
      'TokenSidecarCertificateExpiring',
    ),
    lines(
      'Life left of certificates',
      'As a share of the life of each, the least of its kind in a namespace: whatever renews them begins at a third, as a rule.',
      'percentunit',
      [
        {
          expr: `bottomk(20, min by (namespace, route, credential, file) ((${CERTIFICATE_END} - time()) / (${CERTIFICATE_END} - ${CERTIFICATE_BEGIN})))`,
          legend: '{{namespace}} {{route}}{{credential}} {{file}}',
        },
      ],
    ),
    about(
      lines(
        'Configuration reloads',
        'Changes of the configuration file by what became of them, the pods that do not use what theirs says, and how many configurations a pod has had.',
        'short',
        [
          {
            expr: orZero(
              `sum by (result) (increase(${series('config_reload_total', NAMESPACE)}[$__rate_interval]))`,
            ),
            legend: '{{result}}',
          },
          {
            expr: `sum(1 - ${series('config_last_reload_successful', NAMESPACE)}) or on () vector(0)`,
            legend: 'not in use',
          },
          {
            expr: `max(${series('config_generation', NAMESPACE)})`,
            legend: 'most generations',
          },
        ],
      ),
      'TokenSidecarConfigReloadFailing',
    ),
    lines(
      'Age of the configuration',
      'Time since the configuration in use took effect, the longest and shortest of each namespace.',
      's',
      ['max', 'min'].map((which) => ({
        expr: `${which} by (namespace) (time() - ${series('config_applied_timestamp_seconds', NAMESPACE)})`,
        legend: `{{namespace}} ${which}`,
      })),
    ),
    lines('Age of the credentials', 'Time since the credentials in use were read, the oldest of each.', 's', [
      {
        expr: `max by (namespace, credential) (time() - ${series('credentials_loaded_timestamp_seconds', FLEET)})`,
        legend: '{{namespace}} {{credential}}',
      },
    ]),
    about(
      lines(
        'Secrets that cannot be used, are rejected, or are only polled',
        'Mounted Secrets in which something is missing or wrong; those that the provider rejects while it takes the ones before; and those of whose changes the system does not tell, so that they are seen later.',
        'short',
        [
          {
            expr: `sum(1 - ${series('credentials_watched', FLEET)}) or on () vector(0)`,
            legend: 'only polled',
          },
          {
            expr: `sum(1 - ${series('credentials_usable', FLEET)}) or on () vector(0)`,
            legend: 'not usable',
          },
          {
            expr: `sum(${series('credentials_previous_in_use', FLEET)}) or on () vector(0)`,
            legend: 'rejected, the ones before in use',
          },
        ],
      ),
      'TokenSidecarSecretUnusable',
    ),
    about(
      lines('Files of tokens that cannot be written', 'Where they are not up to date.', 'short', [
        { expr: `sum(1 - ${series('token_file_current', FLEET)}) or on () vector(0)`, legend: 'not current' },
      ]),
      'TokenSidecarTokenFileFailing',
    ),
  ],
};

const proxy: Row = {
  title: 'Proxy',
  collapsed: false,
  panels: [
    lines('Requests by route', 'Requests answered.', 'reqps', [
      {
        expr: `sum by (namespace, route) (rate(${series('proxy_requests_total', ROUTES)}[$__rate_interval]))`,
        legend: '{{namespace}} {{route}}',
      },
    ]),
    lines(
      'Requests by status',
      'Requests answered, by status code.',
      'reqps',
      [
        {
          expr: `sum by (code) (rate(${series('proxy_requests_total', ROUTES)}[$__rate_interval]))`,
          legend: '{{code}}',
        },
      ],
      { stacked: true },
    ),
    heatmap(
      'Request latency',
      'Time from the head of a request to the end of its answer, upstream included.',
      {
        expr: `sum by (le) (increase(${buckets('proxy_request_duration_seconds', ROUTES)}[$__rate_interval]))`,
      },
    ),
    lines('Request latency by route', 'Median and 99th percentile, upstream included.', 's', [
      {
        expr: `histogram_quantile(0.5, sum by (route, le) (rate(${buckets('proxy_request_duration_seconds', ROUTES)}[$__rate_interval])))`,
        legend: '{{route}} p50',
      },
      {
        expr: `histogram_quantile(0.99, sum by (route, le) (rate(${buckets('proxy_request_duration_seconds', ROUTES)}[$__rate_interval])))`,
        legend: '{{route}} p99',
      },
    ]),
    lines(
      'Where the time goes',
      'Mean time of a request, and the part of it that the upstream takes to begin its answer. The rest is the sidecar, waiting for a token or a connection, and the passing of the answer.',
      's',
      [
        {
          expr: `sum by (route) (rate(${totals('proxy_request_duration_seconds', 'sum', ROUTES)}[$__rate_interval])) / sum by (route) (rate(${totals('proxy_request_duration_seconds', 'count', ROUTES)}[$__rate_interval]))`,
          legend: '{{route}} request',
        },
        {
          expr: `sum by (route) (rate(${totals('proxy_upstream_duration_seconds', 'sum', ROUTES)}[$__rate_interval])) / sum by (route) (rate(${totals('proxy_upstream_duration_seconds', 'count', ROUTES)}[$__rate_interval]))`,
          legend: '{{route}} upstream',
        },
      ],
    ),
    lines('Upstream latency by route', 'From the sending of a request to the head of its answer.', 's', [
      {
        expr: `histogram_quantile(0.5, sum by (route, le) (rate(${buckets('proxy_upstream_duration_seconds', ROUTES)}[$__rate_interval])))`,
        legend: '{{route}} p50',
      },
      {
        expr: `histogram_quantile(0.99, sum by (route, le) (rate(${buckets('proxy_upstream_duration_seconds', ROUTES)}[$__rate_interval])))`,
        legend: '{{route}} p99',
      },
    ]),
    lines(
      'Connections opened to upstreams',
      'New connections, and TLS handshakes on them: many for few requests is an upstream that closes early.',
      'ops',
      [
        {
          expr: `sum by (route) (rate(${series('proxy_upstream_connections_total', ROUTES)}[$__rate_interval]))`,
          legend: '{{route}} opened',
        },
        {
          expr: orZero(
            `sum by (route, resumed) (rate(${series('proxy_upstream_tls_handshakes_total', ROUTES)}[$__rate_interval]))`,
          ),
          legend: '{{route}} TLS, resumed: {{resumed}}',
        },
      ],
    ),
    about(
      lines('Errors of the proxy', 'Requests that the proxy itself answered, by error code.', 'reqps', [
        {
          expr: orZero(`sum by (error) (rate(${series('proxy_errors_total', ROUTES)}[$__rate_interval]))`),
          legend: '{{error}}',
        },
      ]),
      'TokenSidecarProxyErrors',
    ),
    about(
      lines(
        'Upstream 401s and replays',
        'Answers 401 from the upstream, gRPC calls that it ended as UNAUTHENTICATED, and requests sent again with a renewed token.',
        'reqps',
        [
          {
            expr: orZero(
              `sum by (route) (rate(${series('proxy_upstream_unauthorized_total', ROUTES)}[$__rate_interval]))`,
            ),
            legend: '{{route}} 401',
          },
          {
            expr: orZero(
              `sum by (route, result) (rate(${series('proxy_replays_total', ROUTES)}[$__rate_interval]))`,
            ),
            legend: '{{route}} replay {{result}}',
          },
        ],
      ),
      'TokenSidecarUpstreamUnauthorized',
    ),
    about(
      lines(
        'DPoP proofs',
        'Proofs made and refused, nonces that servers gave, and requests sent again with one.',
        'ops',
        (
          [
            { name: 'dpop_proofs_total', what: 'made' },
            { name: 'dpop_refused_proofs_total', what: 'refused' },
            { name: 'dpop_nonces_total', what: 'nonces' },
            { name: 'dpop_nonce_repeats_total', what: 'repeats' },
          ] as const
        ).map(({ name, what }) => ({
          expr: orZero(`sum(rate(${series(name, FLEET)}[$__rate_interval]))`),
          legend: what,
        })),
      ),
      'TokenSidecarProofsRefused',
    ),
    lines(
      'Requests by version of HTTP',
      'By which version requests came, and by which they left; none where they did not leave.',
      'reqps',
      [
        {
          expr: `sum by (protocol, upstream_protocol) (rate(${series('proxy_requests_by_protocol_total', ROUTES)}[$__rate_interval]))`,
          legend: '{{protocol}} → {{upstream_protocol}}',
        },
      ],
      { stacked: true },
    ),
    lines(
      'gRPC calls by status',
      'gRPC calls that ended, by grpc-status: 0 is OK, none ended without a status. HTTP has 200 for nearly all of them.',
      'reqps',
      [
        {
          expr: `sum by (grpc_status) (rate(${series('proxy_grpc_calls_total', ROUTES)}[$__rate_interval])) or on () vector(0)`,
          legend: '{{grpc_status}}',
        },
      ],
      { stacked: true },
    ),
    lines(
      'HTTP/2 connections ended for abuse',
      'Connections of apps that asked for more than they may, by what they did.',
      'ops',
      [
        {
          expr: orZero(
            `sum by (namespace, kind) (rate(${series('proxy_http2_abuse_total', NAMESPACE)}[$__rate_interval]))`,
          ),
          legend: '{{namespace}} {{kind}}',
        },
      ],
    ),
    lines(
      'Redirected connections',
      'Connections that the kernel led to the sidecar, in the mode redirect, by what became of them.',
      'ops',
      [
        {
          expr: orZero(
            `sum by (namespace, result) (rate(${series('proxy_redirected_connections_total', NAMESPACE)}[$__rate_interval]))`,
          ),
          legend: '{{namespace}} {{result}}',
        },
      ],
    ),
    lines('Requests in flight', 'Requests begun and not yet answered.', 'short', [
      {
        expr: `sum by (namespace, route) (${series('proxy_requests_in_flight', ROUTES)})`,
        legend: '{{namespace}} {{route}}',
      },
    ]),
    lines(
      'Versions',
      'Programs by version: sidecars, and whatever else of it runs there.',
      'short',
      [
        {
          expr: `count by (version) (${series('build_info', NAMESPACE)})`,
          legend: '{{version}}',
        },
      ],
      { stacked: true },
    ),
  ],
};

const pod: Row = {
  title: 'Pod $pod',
  collapsed: false,
  panels: [
    lines(
      'Token life',
      'Time to the end of the token and to the next planned grant. Saw teeth that turn well above zero are healthy.',
      's',
      [
        {
          expr: `${series('token_expiry_timestamp_seconds', POD)} - time()`,
          legend: '{{pod}} {{credential}} ends',
        },
        {
          expr: `${series('token_renewal_timestamp_seconds', POD)} - time()`,
          legend: '{{pod}} {{credential}} renews',
        },
      ],
    ),
    lines(
      'Token held',
      'Whether a token that may be sent is held, and whether the pod needs it to be ready. One that is not required raises no alert for its absence.',
      'bool_yes_no',
      [
        { expr: series('token_ready', POD), legend: '{{pod}} {{credential}}' },
        { expr: series('credential_required', POD), legend: '{{pod}} {{credential}} required' },
      ],
    ),
    lines('Grants', 'Requests to the token endpoint.', 'ops', [
      {
        expr: `sum by (pod, credential, result) (rate(${series('token_refresh_total', POD)}[$__rate_interval]))`,
        legend: '{{pod}} {{credential}} {{result}}',
      },
    ]),
    lines('Failures in a row', 'Grants that failed since the last that succeeded.', 'short', [
      {
        expr: orZero(series('token_refresh_consecutive_failures', POD)),
        legend: '{{pod}} {{credential}}',
      },
    ]),
    lines('Requests', 'Requests answered, by route and status.', 'reqps', [
      {
        expr: `sum by (pod, route, code) (rate(${series('proxy_requests_total', POD)}[$__rate_interval]))`,
        legend: '{{pod}} {{route}} {{code}}',
      },
    ]),
    lines('Errors of the proxy', 'Requests that the proxy itself answered, by error code.', 'reqps', [
      {
        expr: orZero(
          `sum by (pod, route, error) (rate(${series('proxy_errors_total', POD)}[$__rate_interval]))`,
        ),
        legend: '{{pod}} {{route}} {{error}}',
      },
    ]),
    lines('Left out', 'Log lines that were not printed, and admin connections that were refused.', 'short', [
      {
        expr: `sum by (reason) (increase(${series('log_lines_dropped_total', POD)}[$__rate_interval])) or on () vector(0)`,
        legend: 'log lines {{reason}}',
      },
      {
        expr: `sum(increase(${series('admin_connections_dropped_total', POD)}[$__rate_interval])) or on () vector(0)`,
        legend: 'admin connections',
      },
    ]),
  ],
};

const resources: Row = {
  title: 'Process',
  collapsed: false,
  panels: [
    lines('CPU', 'Cores in use, the busiest pods.', 'short', [
      {
        expr: `topk(10, rate(process_cpu_seconds_total{${POD}}[$__rate_interval]) and on (job, instance) ${series('build_info')})`,
        legend: '{{pod}}',
      },
    ]),
    lines('Memory', 'Resident memory, the largest pods.', 'bytes', [
      { expr: `topk(10, ${ofProcess('process_resident_memory_bytes')})`, legend: '{{pod}}' },
    ]),
    lines(
      'Event-loop delay',
      'How long the process was busy at a stretch in the last minute: what came meanwhile waited for so long.',
      's',
      [
        { expr: `topk(10, ${ofProcess('nodejs_eventloop_lag_p99_seconds')})`, legend: '{{pod}} p99' },
        { expr: `topk(10, ${ofProcess('nodejs_eventloop_lag_max_seconds')})`, legend: '{{pod}} longest' },
      ],
    ),
    lines(
      'Open descriptors',
      'Connections and files, and how many there may be at most in any of the pods.',
      'short',
      [
        { expr: `topk(10, ${ofProcess('process_open_fds')})`, legend: '{{pod}}' },
        { expr: `min(${ofProcess('process_max_fds')})`, legend: 'most' },
      ],
    ),
  ],
};

const injector: Row = {
  title: 'Injector',
  collapsed: true,
  panels: [
    about(
      lines(
        'Admissions',
        'Admission reviews, by outcome.',
        'ops',
        [
          {
            expr: `sum by (result) (rate(${series('injector_admissions_total')}[$__rate_interval]))`,
            legend: '{{result}}',
          },
        ],
        { stacked: true, width: 6 },
      ),
      'TokenSidecarInjectorFailing',
    ),
    about(
      lines(
        'Admission latency',
        'Median and 99th percentile; the API server gives up after 5 s by default.',
        's',
        [
          {
            expr: `histogram_quantile(0.5, sum by (le) (rate(${buckets('injector_admission_duration_seconds')}[$__rate_interval])))`,
            legend: 'p50',
          },
          {
            expr: `histogram_quantile(0.99, sum by (le) (rate(${buckets('injector_admission_duration_seconds')}[$__rate_interval])))`,
            legend: 'p99',
          },
        ],
        { width: 6 },
      ),
      'TokenSidecarInjectorSlow',
    ),
    about(
      lines(
        'Replicas up',
        'Replicas that Prometheus can scrape.',
        'short',
        [{ expr: `sum(up{job="${INJECTOR_JOB}"})`, legend: 'up' }],
        { width: 6 },
      ),
      'TokenSidecarInjectorDown',
    ),
    about(
      lines(
        'Life of the certificate',
        'Time to the end of the serving certificate.',
        's',
        [
          {
            expr: `(${series('injector_certificate_expiry_timestamp_seconds')} > 0) - time()`,
            legend: '{{pod}}',
          },
        ],
        { width: 6 },
      ),
      'TokenSidecarInjectorCertificateExpiring',
    ),
    about(
      lines(
        'Certificates offered, connections ended',
        'Certificates that were loaded or refused, and connections to the webhooks that were ended early.',
        'short',
        [
          {
            expr: `sum by (result) (increase(${series('injector_certificate_reload_total')}[$__rate_interval])) or on () vector(0)`,
            legend: 'certificate {{result}}',
          },
          {
            expr: `sum by (reason) (increase(${series('injector_connections_dropped_total')}[$__rate_interval])) or on () vector(0)`,
            legend: 'connection {{reason}}',
          },
        ],
        { width: 6 },
      ),
      'TokenSidecarInjectorUntrusted',
    ),
    about(
      lines(
        'Pods without their sidecar',
        'Pods that ask for the sidecar and run without it, where the injector looks for them, and what became of them.',
        'short',
        [
          { expr: `max(${series('injector_pods_without_sidecar')})`, legend: 'without' },
          {
            expr: `sum by (result) (increase(${series('injector_evictions_total')}[$__rate_interval])) or on () vector(0)`,
            legend: 'eviction {{result}}',
          },
        ],
        { width: 6 },
      ),
      'TokenSidecarPodsWithoutSidecar',
    ),
  ],
};

const issuer: Row = {
  title: 'Issuer',
  collapsed: true,
  panels: [
    about(
      lines(
        'Token requests',
        'Requests to the token listener, by how they ended.',
        'ops',
        [
          {
            expr: `sum by (result) (rate(${series('issuer_tokens_total')}[$__rate_interval]))`,
            legend: '{{result}}',
          },
        ],
        { stacked: true, width: 8 },
      ),
      'TokenSidecarIssuerDown',
    ),
    lines(
      'Token request latency',
      'Median and 99th percentile.',
      's',
      [
        {
          expr: `histogram_quantile(0.5, sum by (le) (rate(${buckets('issuer_request_duration_seconds')}[$__rate_interval])))`,
          legend: 'p50',
        },
        {
          expr: `histogram_quantile(0.99, sum by (le) (rate(${buckets('issuer_request_duration_seconds')}[$__rate_interval])))`,
          legend: 'p99',
        },
      ],
      { width: 8 },
    ),
    about(
      lines(
        'Clients, reloads, connections ended, DPoP',
        'Registered clients, changes of the mounted Secrets, connections that were ended because of a bound, and DPoP proofs that were refused.',
        'short',
        [
          { expr: series('issuer_clients'), legend: '{{pod}} clients' },
          {
            expr: `sum by (source, result) (increase(${series('issuer_reload_total')}[$__rate_interval])) or on () vector(0)`,
            legend: '{{source}} {{result}}',
          },
          {
            expr: `sum by (reason) (increase(${series('issuer_connections_dropped_total')}[$__rate_interval])) or on () vector(0)`,
            legend: 'connection {{reason}}',
          },
          {
            expr: `sum by (reason) (increase(${series('issuer_dpop_proofs_refused_total')}[$__rate_interval])) > 0 or on () vector(0)`,
            legend: 'proof {{reason}}',
          },
        ],
        { width: 8 },
      ),
      'TokenSidecarIssuerReloadFailing',
    ),
  ],
};

const broker: Row = {
  title: 'Broker',
  collapsed: true,
  panels: [
    about(
      lines(
        'Requests for tokens of pods',
        'Requests to the broker, by how they ended.',
        'ops',
        [
          {
            expr: `sum by (result) (rate(${series('broker_requests_total')}[$__rate_interval]))`,
            legend: '{{result}}',
          },
        ],
        { stacked: true, width: 6 },
      ),
      'TokenSidecarBrokerFailing',
    ),
    lines(
      'Latency of the broker',
      'Median and 99th percentile of its answers, and of the TokenReviews that it asks for.',
      's',
      [
        {
          expr: `histogram_quantile(0.5, sum by (le) (rate(${buckets('broker_request_duration_seconds')}[$__rate_interval])))`,
          legend: 'p50',
        },
        {
          expr: `histogram_quantile(0.99, sum by (le) (rate(${buckets('broker_request_duration_seconds')}[$__rate_interval])))`,
          legend: 'p99',
        },
        {
          expr: `histogram_quantile(0.99, sum by (le) (${ofBroker(`rate(${buckets('caller_token_review_duration_seconds')}[$__rate_interval])`)}))`,
          legend: 'TokenReview p99',
        },
      ],
      { width: 6 },
    ),
    lines(
      'Who asks',
      'Service account tokens by what became of them, and TokenReviews by result.',
      'ops',
      [
        {
          expr: `sum by (result, reason) (${ofBroker(`rate(${series('caller_verdicts_total')}[$__rate_interval])`)})`,
          legend: '{{result}} {{reason}}',
        },
        {
          expr: `sum by (result) (${ofBroker(`rate(${series('caller_token_reviews_total')}[$__rate_interval])`)})`,
          legend: 'TokenReview {{result}}',
        },
      ],
      { width: 6 },
    ),
    about(
      lines(
        'Replicas of the broker',
        'Replicas that Prometheus can scrape, those that are ready, what each has in hand, and the credentials that it keeps alive.',
        'short',
        [
          { expr: `sum(up{job="${BROKER_JOB}"})`, legend: 'up' },
          { expr: `sum(${series('broker_ready')})`, legend: 'ready' },
          { expr: series('broker_requests_in_flight'), legend: '{{pod}} in flight' },
          { expr: series('broker_credentials_open'), legend: '{{pod}} credentials' },
        ],
        { width: 6 },
      ),
      'TokenSidecarBrokerDown',
      'TokenSidecarBrokerReplicaNotReady',
    ),
    about(
      lines(
        'Life of the broker’s certificate',
        'Time to the end of the serving certificate.',
        's',
        [
          {
            expr: `(${series('broker_certificate_expiry_timestamp_seconds')} > 0) - time()`,
            legend: '{{pod}}',
          },
        ],
        { width: 12 },
      ),
      'TokenSidecarBrokerCertificateExpiring',
    ),
    lines(
      'Certificates of the broker, connections ended',
      'Certificates that were loaded or refused, and connections to the broker that were ended early.',
      'short',
      [
        {
          expr: `sum by (result) (increase(${series('broker_certificate_reload_total')}[$__rate_interval])) or on () vector(0)`,
          legend: 'certificate {{result}}',
        },
        {
          expr: `sum by (reason) (increase(${series('broker_connections_dropped_total')}[$__rate_interval])) or on () vector(0)`,
          legend: 'connection {{reason}}',
        },
      ],
      { width: 12 },
    ),
    lines(
      'Looks of the broker into its token cache',
      'Where one is configured: looks before a grant, by how they ended, and tokens that were written or not. With hit and waited there is no grant.',
      'ops',
      [
        {
          expr: `sum by (result) (rate(${series('broker_cache_requests_total')}[$__rate_interval]))`,
          legend: '{{result}}',
        },
        {
          expr: `sum by (result) (rate(${series('broker_cache_stores_total')}[$__rate_interval]))`,
          legend: 'store {{result}}',
        },
      ],
      { width: 12 },
    ),
    lines(
      'Token cache of the broker',
      'Where one is configured: replicas that can ask it, and connections to it that failed or ended, by reason.',
      'short',
      [
        { expr: `sum(${series('broker_cache_connected')})`, legend: 'connected' },
        {
          expr: `sum by (reason) (increase(${series('broker_cache_failures_total')}[$__rate_interval]))`,
          legend: '{{reason}}',
        },
      ],
      { width: 12 },
    ),
  ],
};

const gateway: Row = {
  title: 'Gateway',
  collapsed: true,
  panels: [
    lines(
      'Requests of callers',
      'Requests to the gateway, by the entry of their caller and what was decided.',
      'reqps',
      [
        {
          expr: `sum by (caller, decision) (rate(${series('gateway_requests_total')}[$__rate_interval]))`,
          legend: '{{caller}} {{decision}}',
        },
      ],
      { width: 8 },
    ),
    lines(
      'Callers at the gateway',
      'Requests that were let in and have not ended, by entry, and the callers that each replica remembers.',
      'short',
      [
        { expr: `sum by (caller) (${series('gateway_requests_in_flight')})`, legend: '{{caller}} in flight' },
        { expr: series('gateway_callers'), legend: '{{pod}} callers' },
      ],
      { width: 8 },
    ),
    about(
      lines(
        'Replicas and connections of the gateway',
        'Replicas that Prometheus can scrape, and connections by what became of them before they showed a caller.',
        'short',
        [
          { expr: `count(${series('gateway_callers')})`, legend: 'up' },
          {
            expr: `sum by (result) (rate(${series('gateway_connections_total')}[$__rate_interval]))`,
            legend: 'connections {{result}}',
          },
        ],
        { width: 8 },
      ),
      'TokenSidecarGatewayDown',
      'TokenSidecarGatewayReplicaDown',
    ),
    lines(
      'Tokens of callers',
      'Service account tokens that the gateway was shown, by what became of them, and its TokenReviews.',
      'ops',
      [
        {
          expr: `sum by (result, reason) (${ofGateway(`rate(${series('caller_verdicts_total')}[$__rate_interval])`)})`,
          legend: '{{result}} {{reason}}',
        },
        {
          expr: `sum by (result) (${ofGateway(`rate(${series('caller_token_reviews_total')}[$__rate_interval])`)})`,
          legend: 'TokenReview {{result}}',
        },
      ],
      { width: 8 },
    ),
    about(
      lines(
        'Life of the gateway’s certificate',
        'Time to the end of the serving certificate, and its whole life.',
        's',
        [
          { expr: `${series('gateway_certificate_expiry_timestamp_seconds')} - time()`, legend: '{{pod}}' },
          {
            expr: `${series('gateway_certificate_expiry_timestamp_seconds')} - ${series('gateway_certificate_not_before_timestamp_seconds')}`,
            legend: '{{pod}} whole life',
          },
        ],
        { width: 8 },
      ),
      'TokenSidecarGatewayCertificateExpiring',
    ),
    lines(
      'Files of the gateway',
      'Certificates and authorities that were loaded or refused.',
      'short',
      [
        {
          expr: `sum by (file, result) (increase(${series('gateway_file_reload_total')}[$__rate_interval])) or on () vector(0)`,
          legend: '{{file}} {{result}}',
        },
      ],
      { width: 8 },
    ),
  ],
};

function variable(name: string, label: string, query: string): unknown {
  return {
    name,
    label,
    type: 'query',
    datasource: DATASOURCE,
    definition: query,
    query: { query, refId: name },
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { selected: true, text: ['All'], value: ['$__all'] },
  };
}

/** The dashboard as Grafana imports it. */
export function dashboard(): Readonly<Record<string, unknown>> {
  return {
    uid: 'token-sidecar',
    title: 'Token sidecar',
    description: 'OAuth 2.0 access tokens of pods: do they renew, do requests pass.',
    tags: ['token-sidecar', 'oauth2'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    timezone: 'browser',
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {} },
        variable('namespace', 'Namespace', `label_values(${series('token_ready')}, namespace)`),
        variable('credential', 'Credential', `label_values(${series('token_ready', NAMESPACE)}, credential)`),
        variable('route', 'Route', `label_values(${series('proxy_requests_total', NAMESPACE)}, route)`),
        variable('pod', 'Pod', `label_values(${series('token_ready', NAMESPACE)}, pod)`),
      ],
    },
    annotations: {
      list: [
        {
          name: 'Rotations',
          datasource: DATASOURCE,
          enable: true,
          iconColor: 'purple',
          expr: `sum by (namespace, credential) (changes(${series('credentials_loaded_timestamp_seconds', FLEET)}[1m])) > 0`,
          step: '60s',
          titleFormat: 'New credentials in use',
          textFormat: '{{namespace}} {{credential}}',
        },
      ],
    },
    panels: layOut([fleet, proxy, pod, resources, injector, issuer, broker, gateway]),
  };
}
