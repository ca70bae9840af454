/** Rules on the sidecars: are there tokens, do they renew, do requests pass. */

import { buckets, series } from './metrics.ts';
import { alert, type RecordingRule, type RuleGroup } from './rule-groups.ts';

/** Job names that the chart's monitors set. */
export const SIDECAR_JOB = 'token-sidecar';

function record(name: string, expr: string): RecordingRule {
  return { record: name, expr };
}

/** Ratios are zero, not absent, where there are attempts and none of them counted. */
export const RECORDED = {
  /** Counted from the scrape, not from now: a scrape may be older than a short token's whole margin. */
  remaining: record(
    'token_sidecar:token_remaining_seconds',
    `${series('token_expiry_timestamp_seconds')} - timestamp(${series('token_expiry_timestamp_seconds')})`,
  ),
  /** The most that remained of a token lately, which is nearly its lifetime at issue. */
  lifetime: record(
    'token_sidecar:token_lifetime_seconds:max6h',
    'max_over_time(token_sidecar:token_remaining_seconds[6h])',
  ),
  refreshSuccess: record(
    'namespace_credential:token_sidecar_token_refresh_success:ratio_rate15m',
    `(
  sum by (namespace, credential) (rate(${series('token_refresh_total', 'result="success"')}[15m]))
  or 0 * sum by (namespace, credential) (rate(${series('token_refresh_total')}[15m]))
)
/ (sum by (namespace, credential) (rate(${series('token_refresh_total')}[15m])) > 0)`,
  ),
  refreshLatency: record(
    'namespace_credential:token_sidecar_token_refresh_duration_seconds:p99_15m',
    `histogram_quantile(0.99, sum by (namespace, credential, le) (rate(${buckets('token_refresh_duration_seconds')}[15m])))`,
  ),
  requestRate: record(
    'namespace_route:token_sidecar_proxy_requests:rate5m',
    `sum by (namespace, route) (rate(${series('proxy_requests_total')}[5m]))`,
  ),
  requestLatency: record(
    'namespace_route:token_sidecar_proxy_request_duration_seconds:p99_5m',
    `histogram_quantile(0.99, sum by (namespace, route, le) (rate(${buckets('proxy_request_duration_seconds')}[5m])))`,
  ),
  errorRatio: record(
    'namespace_route:token_sidecar_proxy_errors:ratio_rate5m',
    `(
  sum by (namespace, route) (rate(${series('proxy_errors_total')}[5m]))
  or 0 * sum by (namespace, route) (rate(${series('proxy_requests_total')}[5m]))
)
/ (sum by (namespace, route) (rate(${series('proxy_requests_total')}[5m])) > 0)`,
  ),
  unauthorizedRatio: record(
    'namespace_route:token_sidecar_proxy_upstream_unauthorized:ratio_rate5m',
    `(
  sum by (namespace, route) (rate(${series('proxy_upstream_unauthorized_total')}[5m]))
  or 0 * sum by (namespace, route) (rate(${series('proxy_requests_total')}[5m]))
)
/ (sum by (namespace, route) (rate(${series('proxy_requests_total')}[5m])) > 0)`,
  ),
} as const;

const POD = '{{ $labels.namespace }}/{{ $labels.pod }}';

export const SIDECAR_GROUPS: readonly RuleGroup[] = [
  {
    // One group, because its rules are evaluated in order: alerts see what was recorded in the same moment.
    name: 'token-sidecar.sidecar',
    rules: [
      ...Object.values(RECORDED),
      alert('TokenSidecarTokenExpiring', {
        severity: 'critical',
        expr: `${RECORDED.remaining.record} < 0.1 * ${RECORDED.lifetime.record}
and (
  ${series('token_refresh_consecutive_failures')} > 0
  or ${series('token_renewal_timestamp_seconds')} < timestamp(${series('token_renewal_timestamp_seconds')})
)`,
        for: '1m',
        summary: 'A token is about to end and is not being renewed.',
        description: `Less than a tenth of the life of the token of credential {{ $labels.credential }} in ${POD} is left ({{ $value | humanizeDuration }}) and no renewal has succeeded.`,
      }),
      alert('TokenSidecarTokenUnavailable', {
        severity: 'critical',
        // `unless`, so that sidecars from before this metric are watched as ever.
        expr: `${series('token_ready')} == 0
unless on (namespace, pod, credential) ${series('credential_required')} == 0`,
        for: '2m',
        summary: 'A sidecar has no token: its app is answered 503.',
        description: `${POD} holds no valid token for credential {{ $labels.credential }}. Requests on its routes are answered 503 token_unavailable.`,
      }),
      alert('TokenSidecarRefreshFailing', {
        severity: 'warning',
        expr: `${series('token_refresh_consecutive_failures')} >= 3`,
        for: '5m',
        summary: 'Tokens cannot be renewed.',
        description: `The last {{ $value }} grants for credential {{ $labels.credential }} in ${POD} failed. The held token is served until it ends.`,
      }),
      alert('TokenSidecarCredentialsRejected', {
        severity: 'critical',
        // A counter's first increment makes the series, which increase() cannot see; `unless offset` can.
        expr: `sum by (namespace, pod, credential) (
  increase(${series('token_refresh_total', 'result="rejected"')}[15m]) > 0
  or (${series('token_refresh_total', 'result="rejected"')} > 0 unless ${series('token_refresh_total', 'result="rejected"')} offset 15m)
)
and on (namespace, pod, credential) ${series('token_refresh_consecutive_failures')} > 0`,
        for: '2m',
        summary: 'The identity provider rejects the credentials.',
        description: `The identity provider refuses credential {{ $labels.credential }} of ${POD}. It does not heal by itself: the Secret or the client at the provider must be put right.`,
      }),
      alert('TokenSidecarDown', {
        severity: 'warning',
        expr: `up{job="${SIDECAR_JOB}"} == 0`,
        for: '5m',
        summary: 'A sidecar does not answer its metrics endpoint.',
        description: `Prometheus cannot scrape the sidecar of ${POD}; it may be crashing, and its app without a proxy.`,
      }),
      alert('TokenSidecarAbsent', {
        severity: 'warning',
        expr: `count by (namespace) (last_over_time(${series('token_ready')}[6h]))
unless count by (namespace) (${series('token_ready')})`,
        for: '15m',
        summary: 'A namespace has lost all its sidecars.',
        description:
          'Namespace {{ $labels.namespace }} had sidecars within the last six hours and has none now: they were removed, are not injected any more, or are not scraped.',
      }),
      alert('TokenSidecarNotInjected', {
        severity: 'warning',
        // No data without kube-state-metrics and its allow-list of annotations: then it never fires.
        expr: `kube_pod_annotations{annotation_token_sidecar_dev_inject="true"}
unless on (namespace, pod) (
  kube_pod_init_container_info{container="token-sidecar"} or kube_pod_container_info{container="token-sidecar"}
)`,
        for: '5m',
        summary: 'A pod asked for the sidecar and does not have it.',
        description: `${POD} carries token-sidecar.dev/inject: "true" but no container named token-sidecar. Its calls to loopback are refused.`,
      }),
      alert('TokenSidecarUpstreamUnauthorized', {
        severity: 'warning',
        expr: `${RECORDED.unauthorizedRatio.record} > 0.05`,
        for: '10m',
        summary: 'An upstream refuses the tokens.',
        description:
          '{{ $value | humanizePercentage }} of the requests on route {{ $labels.route }} in namespace {{ $labels.namespace }} are answered 401 by the upstream although they carry a token.',
      }),
      alert('TokenSidecarProxyErrors', {
        severity: 'warning',
        expr: `${RECORDED.errorRatio.record} > 0.05`,
        for: '10m',
        summary: 'The proxy answers errors of its own.',
        description:
          '{{ $value | humanizePercentage }} of the requests on route {{ $labels.route }} in namespace {{ $labels.namespace }} end in an error made by the proxy.',
      }),
    ],
  },
];
