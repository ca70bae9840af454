import { redactedUrl } from '../../platform/log/redacted-text.ts';
import type { ConfigurationReport, Problem, ReloadStateReport } from './report.ts';

/** All others are hidden, so that a setting added later is not shown by accident. */
const SHOWN: ReadonlySet<string> = new Set([
  ...[
    'listen',
    'host',
    'hosts',
    'port',
    'ports',
    'clearPorts',
    'address',
    'admin',
    'logLevel',
    'capture',
    'redirect',
  ],
  ...[
    'credentials',
    'name',
    'directory',
    'clientAuth',
    'method',
    'encoding',
    'grant',
    'type',
    'kind',
    'required',
  ],
  ...[
    'output',
    'file',
    'path',
    'mode',
    'group',
    'endpoint',
    'tokenType',
    'dpop',
    'allowsBearer',
    'scope',
    'audience',
    'tls',
    'caFile',
  ],
  ...[
    'certFile',
    'keyFile',
    'serverName',
    'certificateFile',
    'tokenFile',
    'subjectTokenFile',
    'actorTokenFile',
  ],
  ...[
    'subjectTokenType',
    'actorTokenType',
    'requestedTokenType',
    'algorithm',
    'credentialsDirectory',
    'noProxy',
  ],
  ...['egressProxy', 'requestTimeoutMs', 'waitTimeoutMs', 'renewal', 'at', 'jitter', 'startupJitterMs'],
  ...[
    'minIntervalMs',
    'recoveryMs',
    'defaultLifetimeMs',
    'zeroLifetime',
    'tokenUrl',
    'issuerUrl',
    'routes',
    'match',
    'pathPrefix',
  ],
  ...[
    'upstream',
    'protocol',
    'authority',
    'basePath',
    'stripPrefix',
    'credential',
    'inject',
    'into',
    'header',
  ],
  ...[
    'scheme',
    'existingAuthorization',
    'whenTokenUnavailable',
    'retryOn401',
    'timeouts',
    'connectMs',
    'responseMs',
  ],
  ...[
    'idleMs',
    'forwardProxy',
    'allow',
    'otherHosts',
    'connect',
    'upgradeToTls',
    'interception',
    'tokenEndpoint',
  ],
  ...[
    'crossSiteRequests',
    'limits',
    'headerBytes',
    'headerCount',
    'targetBytes',
    'requestBodyBytes',
    'replayBytes',
  ],
  ...['maxInFlight', 'maxConnections', 'headerTimeoutMs', 'keepAliveTimeoutMs', 'http2', 'maxStreams'],
  ...[
    'streamWindowBytes',
    'connectionWindowBytes',
    'shutdown',
    'drainTimeoutMs',
    'repositories',
    'permissions',
  ],
]);

const HIDDEN = '(set)';

export function redactedSettings(settings: unknown): unknown {
  if (Array.isArray(settings)) return settings.map(redactedSettings);
  if (typeof settings === 'string') return redactedText(settings);
  if (typeof settings !== 'object' || settings === null) return settings;
  const entries = Object.entries(settings).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, SHOWN.has(name) ? redactedSettings(value) : HIDDEN]),
  );
}

/** URLs without what may be secret. */
function redactedText(text: string): string {
  return /^https?:/i.test(text) && URL.canParse(text) ? redactedUrl(text) : text;
}

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

function describeStanding(standing: ConfigurationState['standing']): ReloadStateReport {
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
          reason: report.missing.join('; '),
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
          reason: `${file} ${REASONS[report.reason]}: its errors are told with the configuration`,
          next: `generation ${generation} stays in use until the file changes again`,
          runbook: RUNBOOK,
        },
      ];
  }
}
