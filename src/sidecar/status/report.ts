/** The content of `/api/status` and the page. Nothing in it can be replayed. */

import type { readMemoryUse } from '../../admin/process-metrics.ts';
import type { Condition, CredentialState } from '../../token/condition.ts';

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
  readonly memory: ReturnType<typeof readMemoryUse>;
  readonly verdict: Verdict;
  readonly credentials: readonly CredentialReport[];
  readonly routes: readonly RouteReport[];
  readonly forwardProxy?: ForwardProxyReport;
  /** Absent if there is no file. */
  readonly configuration: ConfigurationReport | undefined;
  /** Without secrets. */
  readonly effectiveConfiguration: unknown;
}

export type ConfigurationReport = {
  readonly file: string;
  /** 1 at the program's start. */
  readonly generation: number;
  readonly since: string;
} & ReloadStateReport;

/** To the file's present content. */
export type ReloadStateReport =
  | { readonly state: 'current' }
  | {
      readonly state: 'waiting';
      readonly waitingSince: string;
      readonly overdue: boolean;
      /** A sentence for each. */
      readonly missing: readonly string[];
    }
  | {
      readonly state: 'refused';
      readonly refusedAt: string;
      readonly reason: 'invalid' | 'restart_required';
      /** For a person, in lines. */
      readonly errors: string;
    };

/** Unknown ones are absent. */
export interface Pod {
  readonly name: string;
  readonly namespace?: string;
  readonly node?: string;
}

export type Level = 'ok' | 'warning' | 'failing';

export interface Verdict {
  readonly level: Level;
  /** For readers who see nothing else. */
  readonly sentence: string;
  /** The worst first; empty if all is well. */
  readonly problems: readonly Problem[];
}

export interface Problem {
  readonly level: Exclude<Level, 'ok'>;
  /** Absent for the sidecar itself. */
  readonly about?: { readonly kind: 'credential' | 'route' | 'configuration'; readonly name: string };
  /** Without its ending, "since …": `credential crm has had no token`. */
  readonly what: string;
  readonly since?: string;
  /** A clause. */
  readonly reason?: string | undefined;
  /** What to do: a clause. */
  readonly advice?: string | undefined;
  /** An exit status of `check`. */
  readonly code?: Condition['code'];
  /** Without its ending: `it asks again`. */
  readonly next?: string | undefined;
  readonly nextAt?: string;
  /** The runbook's page name. */
  readonly runbook?: string;
}

export interface CredentialReport {
  readonly name: string;
  readonly level: Level;
  readonly state: CredentialState;
  /** When the state began; absent if all is well. */
  readonly since?: string | undefined;
  readonly tokenUrl: string | undefined;
  readonly issuerUrl: string | undefined;
  readonly required: boolean;
  readonly tokens: 'held' | 'exchanged';
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
    readonly previousInUse: boolean;
    readonly watchedBy: string;
  };
  /** Absent where tokens are bound to no key. */
  readonly proofOfPossession?: ProofOfPossession | undefined;
  /** Oldest first. */
  readonly history: readonly GrantReport[];
  /** Of the last two hours; only minutes in which grants ended. */
  readonly timeline: readonly MinuteReport[];
}

/** Never a proof or a nonce. Counts since the start, or since the reload that brought the credential. */
interface ProofOfPossession {
  readonly method: 'dpop';
  /** Of this process, or mounted. */
  readonly key: 'own' | 'mounted';
  /** RFC 7638; absent while the mounted key cannot be used. */
  readonly thumbprint: string | undefined;
  /** The provider gave a Bearer token, which `allowBearer` lets pass. */
  readonly holdsBearer: boolean;
  readonly proofs: number;
  readonly nonces: number;
  readonly nonceRepeats: number;
  readonly refusedProofs: number;
  readonly lastRefusedAt: string | undefined;
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

/** `waits`, `without_token`: its credential has no token, and requests get 503 or pass without one. */
export type RouteState = 'ready' | 'waits' | 'without_token' | 'fails' | 'refuses_tokens' | 'answers_errors';

export interface RouteReport {
  readonly name: string;
  readonly level: Level;
  readonly state: RouteState;
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

export interface RequestTotals {
  readonly total: number;
  readonly inFlight: number;
  readonly errors: number;
  readonly grpc: { readonly calls: number; readonly failures: number };
}

/** One figure per interval, oldest first. */
export interface RecentTraffic {
  readonly intervalSeconds: number;
  readonly requests: readonly number[];
  readonly errors: readonly number[];
  /** Null if there was no request. */
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

export type WayOfHosts = 'forward proxy' | 'capture' | 'redirection';

/** Hosts that get a token. */
export interface ForwardProxyReport {
  /** An unlisted host is refused, or passes without a token. */
  readonly ways: readonly { readonly way: WayOfHosts; readonly otherHosts: 'deny' | 'pass' }[];
  /** Of the forward proxy; both are absent without one. */
  readonly connect?: string;
  readonly otherHosts?: string;
  readonly hosts: readonly HostReport[];
  /** To unlisted hosts, since the start. */
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
  readonly state: RouteState;
  readonly credential: string;
  readonly way: WayOfHosts;
  readonly clear: boolean;
  readonly requests: RequestTotals;
  readonly recent: RecentTraffic | undefined;
}
