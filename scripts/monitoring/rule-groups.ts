/** Recording and alerting rules in Prometheus's own file format. */

import manifest from '../../package.json' with { type: 'json' };

export interface RecordingRule {
  readonly record: string;
  readonly expr: string;
}

export interface AlertingRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: 'critical' | 'warning' };
  readonly annotations: {
    readonly summary: string;
    readonly description: string;
    readonly runbook_url: string;
  };
}

export interface RuleGroup {
  readonly name: string;
  readonly interval?: string;
  readonly rules: readonly (RecordingRule | AlertingRule)[];
}

/** Where the page of each alert is, as it was when this version was released. */
export const RUNBOOKS = `https://github.com/token-sidecar/token-sidecar/blob/v${manifest.version}/docs/runbooks`;

/** Where rules are loaded: with the part that they watch, as the chart does, or in a Prometheus that may lack it. */
export type Presence = 'installed' | 'perhaps';

/**
 * No replica of a part is up. Of a part that is installed none has to be seen before. Where it may be missing, none of the
 * targets of its job can be scraped, or one was scraped within a week, by whatever job, and none is now.
 * @param own a metric that the part alone exports.
 */
export function noneIsUp(presence: Presence, job: string, own: string): string {
  if (presence === 'installed') return `absent(${own})`;
  return `(
  count(up{job="${job}"})
  or count(last_over_time(${own}[1w]))
)
unless count(${own})`;
}

/** An alert whose runbook is the page named like it. */
export function alert(
  name: string,
  rule: {
    readonly severity: 'critical' | 'warning';
    readonly expr: string;
    readonly for: string;
    readonly summary: string;
    readonly description: string;
  },
): AlertingRule {
  return {
    alert: name,
    expr: rule.expr,
    for: rule.for,
    labels: { severity: rule.severity },
    annotations: {
      summary: rule.summary,
      description: rule.description,
      runbook_url: `${RUNBOOKS}/${name}.md`,
    },
  };
}
