/** Rules on the gateway: is it there, and will callers know it tomorrow. Whether it has tokens the rules on sidecars say. */

import { series } from './metrics.ts';
import { alert, type Presence, type RuleGroup } from './rule-groups.ts';

/** Whatever scrapes it, the gateway alone exports this. */
const GATEWAY = series('gateway_callers');

const END = series('gateway_certificate_expiry_timestamp_seconds');
const BEGIN = series('gateway_certificate_not_before_timestamp_seconds');

/** What Kubernetes makes hashes and random suffixes of. */
const SAFE = '[bcdfghjklmnpqrstvwxz2456789]';

/**
 * What Kubernetes adds to the name of a Deployment or DaemonSet for a pod's: a ReplicaSet's hash, and five characters. Where the name
 * is long the hash is cut short, and its dash with it. A pod of another name is of the one gateway that its namespace is taken to have.
 */
const SUFFIX = `(?:(?:-${SAFE}{6,10})?-${SAFE}{5}|-${SAFE}{6,15})`;
const POD_OF = `(.+?)${SUFFIX}`;

/** With the label `gateway`: whatever scrapes them, two releases in a namespace have pods of different names. */
const byGateway = (vector: string): string => `label_replace(${vector}, "gateway", "$1", "pod", "${POD_OF}")`;

const UP = `count by (namespace, gateway) (${byGateway(GATEWAY)})`;

/** Of those that were there: several may be, in one namespace, too. */
const GONE = `count by (namespace, gateway) (${byGateway(`last_over_time(${GATEWAY}[6h])`)})
unless ${UP}`;

/** Where the gateway of a release is: what the chart puts in the place of these. */
export const CHART_GATEWAY = { namespace: 'GATEWAY_NAMESPACE', name: 'GATEWAY_NAME' };

/** It needs not to be seen before, and stays down whatever others there are. Its labels are those of the one above, so both are one alert. */
const missing = ({ namespace, name }: typeof CHART_GATEWAY): string =>
  `label_replace(absent(${series('gateway_callers', `namespace="${namespace}", pod=~"${name}${SUFFIX}"`)}), "gateway", "${name}", "", "")`;

const down = (presence: Presence, gateway: typeof CHART_GATEWAY) =>
  presence === 'perhaps'
    ? {
        expr: GONE,
        description:
          'Namespace {{ $labels.namespace }} had a gateway{{ with $labels.gateway }} {{ . }}{{ end }} within the last six hours, and none of its replicas answers now: callers reach none of its routes.',
      }
    : {
        expr: `(${GONE})\nor ${missing(gateway)}`,
        description:
          'None of the replicas of the gateway{{ with $labels.gateway }} {{ . }}{{ end }}{{ with $labels.namespace }} in namespace {{ . }}{{ end }} answers: callers reach none of its routes.',
      };

/** @param gateway that of the release, where one is installed. */
export const gatewayGroups = (presence: Presence, gateway = CHART_GATEWAY): readonly RuleGroup[] => [
  {
    name: 'token-sidecar.gateway',
    rules: [
      alert('TokenSidecarGatewayDown', {
        severity: 'critical',
        for: '5m',
        summary: 'No replica of a gateway is up.',
        ...down(presence, gateway),
      }),
      alert('TokenSidecarGatewayReplicaDown', {
        severity: 'warning',
        // Where none is up the one above says it.
        expr: `${byGateway(`max by (namespace, pod) (
  1 - up
  and on (job, instance, namespace, pod) last_over_time(${GATEWAY}[6h])
) == 1`)}
and on (namespace, gateway) ${UP}`,
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
