/** Rules on the broker: does it answer, does it give tokens, and will pods know it tomorrow. */

import { series } from './metrics.ts';
import { alert, noneIsUp, type Presence, type RuleGroup } from './rule-groups.ts';

export const BROKER_JOB = 'token-sidecar-broker';

/** Answers that are the broker's or the provider's fault, and not the asker's. */
const FAILED = 'result=~"server_error|temporarily_unavailable"';

export const brokerGroups = (presence: Presence): readonly RuleGroup[] => [
  {
    name: 'token-sidecar.broker',
    rules: [
      alert('TokenSidecarBrokerDown', {
        severity: 'critical',
        expr: noneIsUp(presence, BROKER_JOB, series('broker_certificate_expiry_timestamp_seconds')),
        for: '2m',
        summary: 'No replica of the broker is up.',
        description:
          'Pods whose credentials are via the broker get no tokens. Sidecars serve the ones they hold until those end.',
      }),
      alert('TokenSidecarBrokerFailing', {
        severity: 'warning',
        expr: `sum(rate(${series('broker_requests_total', FAILED)}[10m]))
/ sum(rate(${series('broker_requests_total')}[10m])) > 0.05`,
        for: '5m',
        summary: 'The broker has no tokens for pods that may have them.',
        description:
          '{{ $value | humanizePercentage }} of the requests to the broker end without a token for a reason of the broker, the cluster or the provider.',
      }),
      alert('TokenSidecarBrokerCertificateExpiring', {
        severity: 'warning',
        // Renewed with 30 days left by cert-manager, as the chart sets it.
        expr: `min by (namespace, pod) (${series('broker_certificate_expiry_timestamp_seconds')}) < time() + 7 * 86400`,
        for: '1h',
        summary: 'The serving certificate of the broker is about to end.',
        description:
          'The certificate that {{ $labels.namespace }}/{{ $labels.pod }} serves ends within a week and has not been renewed. Once it has ended no sidecar takes a token from there.',
      }),
    ],
  },
];
