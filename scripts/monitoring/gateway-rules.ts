/** Rules on the gateway: is it there, and will callers know it tomorrow. Whether it has tokens the rules on sidecars say. */

import { series } from './metrics.ts';
import { alert, type Presence, type RuleGroup } from './rule-groups.ts';

/** Whatever scrapes it, the gateway alone exports this. */
const GATEWAY = series('gateway_callers');

const END = series('gateway_certificate_expiry_timestamp_seconds');
const BEGIN = series('gateway_certificate_not_before_timestamp_seconds');

/** Several gateways may be where none is known to be installed: each namespace has its own word. */
const DOWN = {
  perhaps: {
    expr: `count by (namespace) (last_over_time(${GATEWAY}[6h]))
unless count by (namespace) (${GATEWAY})`,
    description:
      'Namespace {{ $labels.namespace }} had a gateway within the last six hours, and none of its replicas answers now: callers reach none of its routes.',
  },
  installed: {
    expr: `absent(${GATEWAY})`,
    description: 'None of the replicas of the gateway answers: callers reach none of its routes.',
  },
} as const satisfies Record<Presence, object>;

export const gatewayGroups = (presence: Presence): readonly RuleGroup[] => [
  {
    name: 'token-sidecar.gateway',
    rules: [
      alert('TokenSidecarGatewayDown', {
        severity: 'critical',
        for: '5m',
        summary: 'No replica of a gateway is up.',
        ...DOWN[presence],
      }),
      alert('TokenSidecarGatewayReplicaDown', {
        severity: 'warning',
        // Where none is up the one above says it.
        expr: `max by (namespace, pod) (
  1 - up
  and on (job, instance, namespace, pod) last_over_time(${GATEWAY}[6h])
) == 1
and on (namespace) count by (namespace) (${GATEWAY})`,
        for: '5m',
        summary: 'A replica of a gateway does not answer its metrics endpoint.',
        description:
          'Prometheus cannot scrape {{ $labels.namespace }}/{{ $labels.pod }}, a replica of a gateway, while another one answers. The others do its work, and there is one less to lose.',
      }),
      alert('TokenSidecarGatewayCertificateExpiring', {
        severity: 'warning',
        // Some live for hours: a fifth of their life is theirs to be renewed in.
        expr: `min by (namespace, pod) (${END} - time() < clamp_max((${END} - ${BEGIN}) / 5, 7 * 86400))`,
        for: '1h',
        summary: 'The serving certificate of a gateway is about to end.',
        description:
          'The certificate that {{ $labels.namespace }}/{{ $labels.pod }} serves ends in {{ $value | humanizeDuration }} and has not been renewed. Once it has ended no caller takes the gateway for what it is.',
      }),
    ],
  },
];
