/** Rules on the sidecars: are there tokens, do they renew, do requests pass. */

import { buckets, series } from './metrics.ts';
import { alert, type RecordingRule, type RuleGroup } from './rule-groups.ts';

/** Job names that the chart's monitors set. */
export const SIDECAR_JOB = 'token-sidecar';

function record(name: string, expr: string): RecordingRule {
  return { record: name, expr };
}

/** The labels of one credential of one pod. */
const CREDENTIAL = 'on (namespace, pod, credential)';

/** `unless`, so that sidecars from before this metric are watched as ever. */
const unlessOptional = `unless ${CREDENTIAL} ${series('credential_required')} == 0`;

/** One process that is scraped, and not another one that had its address before. */
const TARGET = 'on (job, instance, namespace, pod)';

/** The broker holds tokens, too, and has rules of its own on who goes without. Whatever scrapes it, it alone exports this. */
const unlessBroker = `unless ${TARGET} ${series('broker_ready')}`;

/** The gateway holds tokens as a sidecar does, for many apps: it is no part of a share of sidecars. */
const unlessGateway = `unless ${TARGET} ${series('gateway_callers')}`;

/** The same, of targets that may be gone. */
const unlessOnceGateway = `unless ${TARGET} last_over_time(${series('gateway_callers')}[6h])`;

/** The broker, where it may be gone. */
const unlessOnceBroker = `unless ${TARGET} last_over_time(${series('broker_ready')}[6h])`;

/** Counted from the scrape, not from now: a scrape may be older than a short token's whole margin. */
const remaining = record(
  'token_sidecar:token_remaining_seconds',
  `${series('token_expiry_timestamp_seconds')} - timestamp(${series('token_expiry_timestamp_seconds')})`,
);

/** The most that remained of a token lately, which is nearly its lifetime at issue. */
const lifetime = record(
  'token_sidecar:token_lifetime_seconds:max6h',
  'max_over_time(token_sidecar:token_remaining_seconds[6h])',
);

/** Tokens about to end whose renewal fails or is overdue. */
const EXPIRING = `${remaining.record} < 0.1 * ${lifetime.record}
and (
  ${series('token_refresh_consecutive_failures')} > 0
  or ${series('token_renewal_timestamp_seconds')} < timestamp(${series('token_renewal_timestamp_seconds')})
)`;

/** Credentials that a pod requires and has no token of. */
const UNAVAILABLE = `${series('token_ready')} == 0
${unlessOptional}
${unlessBroker}`;

/** 1 for each pod that has no token of a credential which it requires, or is about to lose it; 0 for the others. */
const withoutToken = record(
  'namespace_pod:token_sidecar_without_token:bool',
  `max by (namespace, pod) (
  (
    0 * (${EXPIRING}) + 1
    or (${series('token_ready')} == bool 0)
  )
  ${unlessOptional}
  ${unlessBroker}
  ${unlessGateway}
)`,
);

/** Pods of whose requests the provider has refused one lately, and granted none since, or none but to credentials that were replaced. */
const rejected = record(
  'namespace_pod_credential:token_sidecar_rejected',
  // A counter's first increment makes the series, which increase() cannot see; `unless offset` can.
  `sum by (namespace, pod, credential) (
  increase(${series('token_refresh_total', 'result="rejected"')}[15m]) > 0
  or (${series('token_refresh_total', 'result="rejected"')} > 0 unless ${series('token_refresh_total', 'result="rejected"')} offset 15m)
)
and ${CREDENTIAL} ${series('token_refresh_consecutive_failures')} > 0
or max by (namespace, pod, credential) (${series('credentials_previous_in_use')} == 1)`,
);

/** A share that counts: of more than one pod, or of the only one. */
const NAMESPACE_WITHOUT = (() => {
  const without = `sum by (namespace) (${withoutToken.record})`;
  const all = `count by (namespace) (${withoutToken.record})`;
  return `${without} / ${all} > 0.25
and (${without} > 1 or ${without} == ${all})`;
})();

const ALL_WITHOUT = `sum (${withoutToken.record})`;
const ALL_SIDECARS = `count (${withoutToken.record})`;

/** A share that counts, and more than one pod of it outside of the namespace that has most of them; or all there are. */
const FLEET_WITHOUT = `${ALL_WITHOUT} / ${ALL_SIDECARS} > 0.05
and (
  ${ALL_WITHOUT} - max(sum by (namespace) (${withoutToken.record})) > 1
  or ${ALL_WITHOUT} == ${ALL_SIDECARS}
)`;

const CERTIFICATE_END = series('tls_certificate_expiry_timestamp_seconds');
const CERTIFICATE_BEGIN = series('tls_certificate_not_before_timestamp_seconds');

/** Seconds left of certificates of which there is less than a week and, where they live for less than five, a fifth of the life. */
const CERTIFICATE_ENDING = `min by (namespace, route, credential, file) (
  ${CERTIFICATE_END} - time() < clamp_max((${CERTIFICATE_END} - ${CERTIFICATE_BEGIN}) / 5, 7 * 86400)
  or (${CERTIFICATE_END} - time() < 7 * 86400 unless ${CERTIFICATE_BEGIN})
)`;

/** One ticket says what is wrong with a credential: the one that knows most. */
const UNLESS_KNOWN_BETTER = `unless ${CREDENTIAL} ${rejected.record}
unless ${CREDENTIAL} ${series('credentials_usable')} == 0`;

/** Ratios are zero, not absent, where there are attempts and none of them counted. */
export const RECORDED = {
  remaining,
  lifetime,
  withoutToken,
  rejected,
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
      alert('TokenSidecarFleetWithoutTokens', {
        severity: 'critical',
        expr: FLEET_WITHOUT,
        for: '2m',
        summary: 'Many sidecars have no token, or are about to lose it.',
        description:
          '{{ $value | humanizePercentage }} of all sidecars have no token that may be sent, or one that is about to end and is not being renewed. Requests of their apps are answered 503.',
      }),
      alert('TokenSidecarNamespaceWithoutTokens', {
        severity: 'critical',
        // The one above says it where it is more than one namespace's trouble.
        expr: `(
  ${NAMESPACE_WITHOUT}
)
unless on () (
  ${FLEET_WITHOUT}
)`,
        for: '5m',
        summary: 'The sidecars of a namespace have no token, or are about to lose it.',
        description:
          '{{ $value | humanizePercentage }} of the sidecars of namespace {{ $labels.namespace }} have no token that may be sent, or one that is about to end and is not being renewed. Requests of their apps are answered 503.',
      }),
      alert('TokenSidecarTokenExpiring', {
        severity: 'warning',
        expr: `${EXPIRING}
${unlessBroker}
${UNLESS_KNOWN_BETTER}
unless ${CREDENTIAL} (${UNAVAILABLE})`,
        for: '1m',
        summary: 'A token is about to end and is not being renewed.',
        description: `Less than a tenth of the life of the token of credential {{ $labels.credential }} in ${POD} is left ({{ $value | humanizeDuration }}) and no renewal has succeeded.`,
      }),
      alert('TokenSidecarTokenUnavailable', {
        severity: 'warning',
        expr: `${UNAVAILABLE}
${UNLESS_KNOWN_BETTER}`,
        for: '2m',
        summary: 'A sidecar has no token: its app is answered 503.',
        description: `${POD} holds no valid token for credential {{ $labels.credential }}. Requests on its routes are answered 503 token_unavailable.`,
      }),
      alert('TokenSidecarRefreshFailing', {
        severity: 'warning',
        expr: `${series('token_refresh_consecutive_failures')} >= 3
${UNLESS_KNOWN_BETTER}
unless ${CREDENTIAL} (${UNAVAILABLE})`,
        for: '5m',
        summary: 'Tokens cannot be renewed.',
        description: `The last {{ $value }} grants for credential {{ $labels.credential }} in ${POD} failed. A token that is held is served until it ends.`,
      }),
      alert('TokenSidecarCredentialsRejected', {
        severity: 'warning',
        expr: rejected.record,
        for: '2m',
        summary: 'The identity provider rejects the credentials.',
        description: `The identity provider refuses credential {{ $labels.credential }} of ${POD}. It does not heal by itself: the Secret or the client at the provider must be put right.`,
      }),
      alert('TokenSidecarSecretUnusable', {
        severity: 'warning',
        expr: `${series('credentials_usable')} == 0`,
        for: '5m',
        summary: 'A mounted Secret cannot be used.',
        description: `What is mounted for credential {{ $labels.credential }} in ${POD} cannot be used: a file is missing, empty or not what it should be. What was read before stays in use; a pod that starts now gets no token.`,
      }),
      alert('TokenSidecarTokenFileFailing', {
        severity: 'warning',
        expr: `${series('token_file_current')} == 0`,
        for: '1m',
        summary: 'The file of a token cannot be written.',
        description: `The file of the token of credential {{ $labels.credential }} in ${POD} cannot be written or removed. Its readers get the token before until that ends, and then none.`,
      }),
      alert('TokenSidecarCertificateExpiring', {
        severity: 'warning',
        // The longest that an old certificate stays in use beside a new one is the time between two grants.
        expr: CERTIFICATE_ENDING,
        for: '1h',
        summary: 'A certificate that sidecars use is about to end.',
        description:
          '{{ $labels.file }} of {{ if $labels.route }}route {{ $labels.route }}{{ else }}credential {{ $labels.credential }}{{ end }} in namespace {{ $labels.namespace }} ends in {{ $value | humanizeDuration }} and has not been replaced.',
      }),
      alert('TokenSidecarDown', {
        severity: 'warning',
        // By the job that the chart sets, or by any that scraped a sidecar there.
        expr: `(
  up{job="${SIDECAR_JOB}"} == 0
  or (up == 0 and on (job, instance) last_over_time(${series('token_ready')}[6h]))
)
${unlessOnceBroker}
${unlessOnceGateway}`,
        for: '5m',
        summary: 'A sidecar does not answer its metrics endpoint.',
        description: `Prometheus cannot scrape the sidecar of ${POD}; it may be crashing, and its app without a proxy.`,
      }),
      alert('TokenSidecarAbsent', {
        severity: 'warning',
        expr: `count by (namespace) (
  last_over_time(${series('token_ready')}[6h])
  ${unlessOnceBroker}
  ${unlessOnceGateway}
)
unless count by (namespace) (
  ${series('token_ready')}
  ${unlessBroker}
  ${unlessGateway}
)`,
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
      alert('TokenSidecarProofsRefused', {
        severity: 'warning',
        expr: `sum by (namespace, credential) (rate(${series('dpop_refused_proofs_total')}[5m]))
/ sum by (namespace, credential) (rate(${series('dpop_proofs_total')}[5m])) > 0.05`,
        for: '10m',
        summary: 'An upstream refuses the proofs of DPoP-bound tokens.',
        description:
          '{{ $value | humanizePercentage }} of the proofs for tokens of credential {{ $labels.credential }} in namespace {{ $labels.namespace }} are refused by an upstream. It refuses the proof, not the token: clock, URL or nonce.',
      }),
      alert('TokenSidecarProxyErrors', {
        severity: 'warning',
        expr: `${RECORDED.errorRatio.record} > 0.05`,
        for: '10m',
        summary: 'The proxy answers errors of its own.',
        description:
          '{{ $value | humanizePercentage }} of the requests on route {{ $labels.route }} in namespace {{ $labels.namespace }} end in an error made by the proxy.',
      }),
      alert('TokenSidecarConfigReloadFailing', {
        severity: 'warning',
        // One ConfigMap may reach many pods: one alert says it for all of them.
        expr: `count by (namespace) (${series('config_last_reload_successful')} == 0)`,
        for: '5m',
        summary: 'A changed configuration is not in use.',
        description:
          '{{ $value }} sidecars or gateways in namespace {{ $labels.namespace }} do not use what their configuration file says: it is not valid, takes a restart, or waits for a token. They go on with the one before.',
      }),
    ],
  },
];
