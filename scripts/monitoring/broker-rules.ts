/** Rules on the broker: does it answer, does it give tokens, and will pods know it tomorrow. */

import { series } from './metrics.ts';
import { alert, noneIsUp, type Presence, type RuleGroup } from './rule-groups.ts';

export const BROKER_JOB = 'token-sidecar-broker';

const READY = series('broker_ready');

/** Answers that are the broker's or the provider's fault, and not the asker's. */
const FAILED = 'server_error|temporarily_unavailable';

/** A request counts where the asker may have a token: floods of others hide no failure. */
const answered = (results: string): string =>
  `sum(rate(${series('broker_requests_total', `result=~"${results}"`)}[10m]))`;

export const brokerGroups = (presence: Presence): readonly RuleGroup[] => [
  {
    name: 'token-sidecar.broker',
    rules: [
      alert('TokenSidecarBrokerDown', {
        severity: 'critical',
        // A replica that has never read keys or profiles is up, and gives no tokens.
        expr: `${noneIsUp(presence, BROKER_JOB, READY)}
or max(${READY}) == 0`,
        for: '2m',
        summary: 'No replica of the broker is ready.',
        description:
          'Pods whose credentials are via the broker get no tokens. Sidecars serve the ones they hold until those end.',
      }),
      alert('TokenSidecarBrokerReplicaNotReady', {
        severity: 'warning',
        // Where none is ready the one above says it.
        expr: `max by (namespace, pod) (${READY} == 0 or up{job="${BROKER_JOB}"} == 0)
and on () max(${READY}) == 1`,
        for: '10m',
        summary: 'A replica of the broker is not ready.',
        description:
          'The replica {{ $labels.namespace }}/{{ $labels.pod }} of the broker is not ready, or cannot be scraped, while another is. The others do its work, and there is one less to lose.',
      }),
      alert('TokenSidecarBrokerFailing', {
        severity: 'warning',
        expr: `${answered(FAILED)}
/ ${answered(`given|${FAILED}`)} > 0.05`,
        for: '5m',
        summary: 'The broker has no tokens for pods that may have them.',
        description:
          '{{ $value | humanizePercentage }} of the requests of pods that may have a token end without one for a reason of the broker, the cluster or the provider.',
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
