/** The content of `/api/status` and the page: everything an operator asks of a sidecar, and nothing that could be replayed. */

import type { MemoryUse } from '../../admin/process-metrics.ts';

/** Instants are ISO 8601 in UTC. */
export interface StatusReport {
  readonly version: string;
  readonly revision: string;
  readonly node: string;
  readonly pod: Pod;
  /** When all of this was true. */
  readonly at: string;
  readonly startedAt: string;
  readonly uptimeSeconds: number;
  readonly draining: boolean;
  readonly logLevel: string;
  readonly memory: MemoryUse;
  readonly verdict: Verdict;
  readonly credentials: readonly CredentialReport[];
  readonly routes: readonly RouteReport[];
  readonly forwardProxy?: ForwardProxyReport;
  /** How the configuration in use relates to its file; absent if there is none. */
  readonly configuration: ConfigurationReport | undefined;
  /** The settings in use, without anything that may be secret. */
  readonly effectiveConfiguration: unknown;
}

export type ConfigurationReport = {
  readonly file: string;
  /** 1 for the one that the program was started with. */
  readonly generation: number;
  readonly since: string;
} & StandingReport;

/** How it relates to the file's present content. */
export type StandingReport =
  | { readonly state: 'current' }
  | {
      readonly state: 'waiting';
      readonly waitingSince: string;
      readonly overdue: boolean;
      /** What is awaited, a sentence each. */
      readonly missing: readonly string[];
    }
  | {
      readonly state: 'refused';
      readonly refusedAt: string;
      readonly reason: 'invalid' | 'restart_required';
      /** For a person, in lines. */
      readonly errors: string;
    };

/** Kubernetes' own names; unknown ones are absent. */
export interface Pod {
  readonly name: string;
  readonly namespace?: string;
  readonly node?: string;
}

export type Level = 'ok' | 'warning' | 'failing';

export interface Verdict {
  readonly level: Level;
  /** One sentence for readers who see nothing else. */
  readonly sentence: string;
  /** The worst first; empty if all is well. */
  readonly problems: readonly Problem[];
}

/** What fails, since when, and what happens next. */
export interface Problem {
  readonly level: Exclude<Level, 'ok'>;
  /** A credential or a route, or the configuration by its file; absent for the sidecar itself. */
  readonly about?: { readonly kind: 'credential' | 'route' | 'configuration'; readonly name: string };
  /** Without its ending, which is since when: `credential crm has had no token`. */
  readonly what: string;
  readonly since?: string;
  /** A sentence. */
  readonly why?: string;
  /** Without its ending: `it asks again`. */
  readonly next: string;
  readonly nextAt?: string;
  /** The runbook's page name. */
  readonly runbook?: string;
}

export interface CredentialReport {
  readonly name: string;
  readonly level: Level;
  readonly tokenUrl: string | undefined;
  readonly issuerUrl: string | undefined;
  readonly required: boolean;
  /** Held and renewed for the pod, or exchanged for each request's own token. */
  readonly tokens: 'held' | 'exchanged';
  /** When it was opened: at the start, or by a reload. */
  readonly openedAt: string;
  readonly ready: boolean;
  readonly requestedAt: string | undefined;
  readonly expiresAt: string | undefined;
  readonly expiresInSeconds: number | undefined;
  readonly nextGrantAt: string | undefined;
  readonly nextGrantReason: string | undefined;
  readonly grantInFlight: boolean;
  readonly consecutiveFailures: number;
  readonly failingSince: string | undefined;
  readonly lastFailure: { readonly at: string; readonly result: string; readonly detail: string } | undefined;
  readonly mountedCredentials: {
    readonly state: string;
    readonly detail: string | undefined;
    readonly unusableSince?: string | undefined;
    readonly previousInUse: boolean;
    readonly previousInUseSince?: string | undefined;
    readonly watchedBy: string;
  };
  /** The latest grants, oldest first. */
  readonly history: readonly GrantReport[];
  /** The minutes of the last two hours in which grants ended. */
  readonly timeline: readonly MinuteReport[];
}

interface GrantReport {
  readonly at: string;
  readonly reason: string;
  readonly result: string;
  readonly durationMs: number;
}

export interface MinuteReport {
  readonly at: string;
  readonly succeeded: number;
  readonly failed: number;
}

export interface RouteReport {
  readonly name: string;
  readonly level: Level;
  readonly match: unknown;
  readonly upstream: string;
  readonly protocol: string;
  readonly upstreamSpeaks: string | undefined;
  readonly credential: string;
  readonly inject: unknown;
  readonly egressProxy: string | undefined;
  readonly requests: RequestTotals;
  /** Absent if there was no request. */
  readonly recent: RecentTraffic | undefined;
}

/** Since the start. */
export interface RequestTotals {
  readonly total: number;
  readonly inFlight: number;
  readonly errors: number;
  readonly grpc: { readonly calls: number; readonly failures: number };
}

/** For the last minutes. Series have one figure per interval, oldest first. */
export interface RecentTraffic {
  readonly intervalSeconds: number;
  readonly requests: readonly number[];
  /** Requests that the proxy refused or could not complete. */
  readonly errors: readonly number[];
  /** Milliseconds; null if there was no request. */
  readonly p50Ms: readonly (number | null)[];
  readonly p99Ms: readonly (number | null)[];
  /** For the whole time. */
  readonly statusClasses: Readonly<Record<string, number>>;
  readonly errorsByCode: Readonly<Record<string, number>>;
  readonly p50: number | null;
  readonly p99: number | null;
  /** 401 answers to an injected token. */
  readonly refusedTokens: number;
}

/** The ways in which requests to listed hosts come. */
export type WayOfHosts = 'forward proxy' | 'capture' | 'redirection';

/** Hosts that get a token, in whichever way their requests come. */
export interface ForwardProxyReport {
  /** The ways in use, and what becomes of an unlisted host there: it is refused, or passes without a token. */
  readonly ways: readonly { readonly way: WayOfHosts; readonly otherHosts: 'deny' | 'pass' }[];
  /** For the forward proxy; both are absent if there is none. */
  readonly connect?: string;
  readonly otherHosts?: string;
  readonly hosts: readonly HostReport[];
  /** Requests to unlisted hosts since the start. */
  readonly refusals: number;
  /** The latest first. */
  readonly refusedHosts: readonly {
    readonly host: string;
    readonly times: number;
    readonly lastAt: string;
  }[];
}

export interface HostReport {
  readonly host: string;
  readonly level: Level;
  readonly credential: string;
  readonly way: WayOfHosts;
  readonly clear: boolean;
  readonly requests: RequestTotals;
  readonly recent: RecentTraffic | undefined;
}
