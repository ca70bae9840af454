/** How the configuration in use relates to the file that it was read from. */

import type { ConfigurationReport, Problem, StandingReport } from './report.ts';

/** Instants are wall time in ms. */
export interface ConfigurationState {
  readonly file: string;
  readonly generation: number;
  readonly sinceMs: number;
  readonly standing:
    | { readonly state: 'current' }
    | {
        readonly state: 'waiting';
        readonly sinceMs: number;
        readonly overdue: boolean;
        missing(): readonly string[];
      }
    | {
        readonly state: 'refused';
        readonly atMs: number;
        readonly result: 'invalid' | 'restart_required';
        readonly report: string;
      };
}

export function describeConfigurationState({
  file,
  generation,
  sinceMs,
  standing,
}: ConfigurationState): ConfigurationReport {
  return { file, generation, since: new Date(sinceMs).toISOString(), ...describeStanding(standing) };
}

function describeStanding(standing: ConfigurationState['standing']): StandingReport {
  switch (standing.state) {
    case 'current':
      return { state: 'current' };
    case 'waiting': {
      const { sinceMs, overdue, missing } = standing;
      return {
        state: 'waiting',
        waitingSince: new Date(sinceMs).toISOString(),
        overdue,
        missing: missing(),
      };
    }
    case 'refused': {
      const { atMs, result, report } = standing;
      return { state: 'refused', refusedAt: new Date(atMs).toISOString(), reason: result, errors: report };
    }
  }
}

const RUNBOOK = 'TokenSidecarConfigReloadFailing';

const REASONS = {
  invalid: 'is not valid',
  restart_required: 'changes what only another start can',
} as const;

/** What is wrong with a file that is not in use. */
export function problemsOfConfiguration(report: ConfigurationReport | undefined): Problem[] {
  if (report === undefined) return [];
  const { file, generation } = report;
  const about = { kind: 'configuration', name: file } as const;
  switch (report.state) {
    case 'current':
      return [];
    case 'waiting':
      if (!report.overdue) return [];
      return [
        {
          level: 'warning',
          about,
          what: 'the changed configuration file has waited for tokens',
          since: report.waitingSince,
          why: report.missing.join(' '),
          next: `generation ${generation} is in use until they are there`,
          runbook: RUNBOOK,
        },
      ];
    case 'refused':
      return [
        {
          level: 'warning',
          about,
          what: 'the changed configuration file has been refused',
          since: report.refusedAt,
          why: `${file} ${REASONS[report.reason]}: its errors are told with the configuration.`,
          next: `generation ${generation} stays in use until the file changes again`,
          runbook: RUNBOOK,
        },
      ];
  }
}
