/** Rules on the injector: does it answer, soon enough, without errors, and will it tomorrow. */

import { buckets, series } from './metrics.ts';
import { alert, noneIsUp, type Presence, type RuleGroup } from './rule-groups.ts';

export const INJECTOR_JOB = 'token-sidecar-injector';

export const injectorGroups = (presence: Presence): readonly RuleGroup[] => [
  {
    name: 'token-sidecar.injector',
    rules: [
      alert('TokenSidecarInjectorDown', {
        severity: 'critical',
        expr: noneIsUp(presence, INJECTOR_JOB, series('injector_certificate_expiry_timestamp_seconds')),
        for: '5m',
        summary: 'No replica of the injector is up.',
        description:
          'Pods that ask for the sidecar start without it (failurePolicy Ignore) or do not start at all (Fail).',
      }),
      alert('TokenSidecarInjectorFailing', {
        severity: 'warning',
        expr: `sum(rate(${series('injector_admissions_total', 'result="error"')}[10m]))
/ sum(rate(${series('injector_admissions_total')}[10m])) > 0.01`,
        for: '5m',
        summary: 'The injector fails on admission reviews.',
        description:
          '{{ $value | humanizePercentage }} of the admission reviews end in an error of the injector.',
      }),
      alert('TokenSidecarInjectorSlow', {
        severity: 'warning',
        // The API server gives up after 5 s by default.
        expr: `histogram_quantile(0.99, sum by (le) (rate(${buckets('injector_admission_duration_seconds')}[10m]))) > 1`,
        for: '10m',
        summary: 'The injector answers slowly.',
        description:
          'The slowest hundredth of the admission reviews takes {{ $value | humanizeDuration }}; the API server gives up after the timeout of the webhook, 5 s by default.',
      }),
      alert('TokenSidecarInjectorUntrusted', {
        severity: 'warning',
        // Any pod can reject the certificate; if API servers do, no review is answered. They may ask again after 1000 s only.
        expr: `sum by (namespace, pod) (increase(${series('injector_connections_dropped_total', 'reason="untrusted"')}[30m])) > 0
unless sum by (namespace, pod) (increase(${series('injector_admissions_total')}[10m])) > 0`,
        for: '5m',
        summary: 'Callers do not trust the certificate of the injector.',
        description:
          'Callers of {{ $labels.namespace }}/{{ $labels.pod }} broke off the TLS handshake because of its certificate, and it has answered no review for ten minutes. If they are API servers, pods that ask for the sidecar start without it or do not start at all.',
      }),
      alert('TokenSidecarPodsWithoutSidecar', {
        severity: 'warning',
        // One replica counts, the others say 0; a pod that is being evicted is soon gone.
        expr: `max by (namespace) (${series('injector_pods_without_sidecar')}) > 0`,
        for: '10m',
        summary: 'Pods run without the sidecar they ask for.',
        description:
          '{{ $value }} pods ask for the sidecar and run without it. Their calls to loopback are refused. Events on their owners name them.',
      }),
      alert('TokenSidecarInjectorCertificateExpiring', {
        severity: 'warning',
        // Renewed with 30 days left, by cert-manager and by the injector itself, as the chart sets them.
        expr: `min by (namespace, pod) (${series('injector_certificate_expiry_timestamp_seconds')}) < time() + 7 * 86400`,
        for: '1h',
        summary: 'The serving certificate of the injector is about to end.',
        description:
          'The certificate that {{ $labels.namespace }}/{{ $labels.pod }} serves ends within a week and has not been renewed. Once it has ended the API server does not accept the injector any more.',
      }),
    ],
  },
];
