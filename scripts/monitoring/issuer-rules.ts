/** Rules on the Token Issuance Service. */

import { series } from './metrics.ts';
import { alert, noneIsUp, type Presence, type RuleGroup } from './rule-groups.ts';

export const ISSUER_JOB = 'token-sidecar-issuer';

export const issuerGroups = (presence: Presence): readonly RuleGroup[] => [
  {
    name: 'token-sidecar.issuer',
    rules: [
      alert('TokenSidecarIssuerDown', {
        severity: 'critical',
        expr: noneIsUp(presence, ISSUER_JOB, series('issuer_clients')),
        for: '2m',
        summary: 'No replica of the issuer is up.',
        description: 'No tokens are issued. Sidecars serve the ones they hold until those end.',
      }),
      alert('TokenSidecarIssuerReloadFailing', {
        severity: 'warning',
        expr: `sum by (namespace, pod, source) (
  increase(${series('issuer_reload_total', 'result="failure"')}[30m]) > 0
  or (${series('issuer_reload_total', 'result="failure"')} > 0 unless ${series('issuer_reload_total', 'result="failure"')} offset 30m)
)`,
        for: '0m',
        summary: 'The issuer cannot use a changed Secret.',
        description:
          'The {{ $labels.source }} of the issuer {{ $labels.namespace }}/{{ $labels.pod }} changed into something it cannot use; it goes on with what it had.',
      }),
    ],
  },
];
