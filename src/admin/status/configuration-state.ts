/** How the configuration in use stands to the file that it was read from. */

import type { ConfigurationReport, Problem } from './report.ts';

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
        readonly result: string;
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

function describeStanding(
  standing: ConfigurationState['standing'],
): Pick<ConfigurationReport, 'state'> & Partial<ConfigurationReport> {
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

/** What is wrong with a file that is not in use. */
export function problemsOfConfiguration(report: ConfigurationReport | undefined): Problem[] {
  if (report?.state === 'refused') {
    return [
      {
        level: 'warning',
        what: 'the changed configuration file has been refused',
        ...(report.refusedAt === undefined ? {} : { since: report.refusedAt }),
        why: `${report.file} ${report.reason === 'restart_required' ? 'changes what only another start can' : 'is not valid'}: see Sidecar, below.`,
        next: `generation ${report.generation} stays in use until the file changes again`,
        runbook: 'TokenSidecarConfigReloadFailing',
      },
    ];
  }
  if (report?.state === 'waiting' && report.overdue === true) {
    return [
      {
        level: 'warning',
        what: 'the changed configuration file has waited for tokens',
        ...(report.waitingSince === undefined ? {} : { since: report.waitingSince }),
        why: (report.missing ?? []).join(' '),
        next: `generation ${report.generation} is in use until they are there`,
        runbook: 'TokenSidecarConfigReloadFailing',
      },
    ];
  }
  return [];
}
