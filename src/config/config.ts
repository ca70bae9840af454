/** Resolved, checked and frozen. Durations are milliseconds, sizes bytes. */

import type { LogLevel } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import type { ClientAuthentication } from './client-authentication.ts';
import type { RenewalPolicy } from './renewal.ts';

export interface Config {
  readonly listen: ListenAddress;
  /** Probes, metrics, status page. */
  readonly admin: {
    readonly listen: ListenAddress;
    /** Lower-case names for the status page, besides loopback, addresses and the cluster's names. */
    readonly hosts: readonly string[];
  };
  readonly logLevel: LogLevel;
  /** At least one; names are unique. */
  readonly credentials: readonly CredentialConfig[];
  /** First match wins. */
  readonly routes: readonly RouteConfig[];
  /** Without it, absolute-form requests and CONNECT are refused. */
  readonly forwardProxy?: ForwardProxyConfig;
  /** Names of these hosts lead to the sidecar. */
  readonly capture?: CaptureConfig;
  /** The system redirects connections to these hosts here. */
  readonly redirect?: RedirectConfig;
  /** Present for the command `gateway`. */
  readonly gateway?: GatewayConfig;
  /** Present if TLS is intercepted. */
  readonly interception?: InterceptionConfig;
  /** Present if a credential hands out its tokens there. */
  readonly tokenEndpoint?: { readonly listen: ListenAddress };
  /** Requests that another site's page makes a browser send. */
  readonly crossSiteRequests: 'allow' | 'refuse';
  readonly accessLog?: AccessLogConfig;
  readonly limits: ProxyLimits;
  readonly shutdown: { readonly drainTimeoutMs: number };
}

export interface AccessLogConfig {
  readonly requests: 'errors' | 'all';
  /** From 0 to 1; errors are always logged. */
  readonly sample: number;
}

export interface TlsConfig {
  /** PEM. Replaces all other roots. */
  readonly caFile?: string;
  /** PEM; both or neither. */
  readonly certFile?: string;
  readonly keyFile?: string;
  /** Replaces the URL's host in SNI and in the certificate's check. */
  readonly serverName?: string;
}

/** The operator's proxy for outgoing connections (CONNECT, RFC 9110 §9.3.6). */
export interface EgressProxyConfig {
  /** IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** A mounted Secret with `username` and `password`. */
  readonly credentialsDirectory?: string;
  /** Names, `.suffix`, addresses, CIDR; lower-case. */
  readonly noProxy: readonly string[];
}

/** Files are names in the credential's directory. */
export type GrantConfig = JwtBearerGrant | TokenExchangeGrant | StaticGrant;

export type JwtBearerGrant = { readonly type: 'jwt_bearer'; readonly keyFile: string } & (
  | {
      readonly kind: 'rfc7523';
      readonly certificateFile?: string;
      readonly keyId?: string;
      readonly algorithm?: AssertionAlgorithm;
      /** The client id by default. */
      readonly issuer?: string;
      /** The issuer by default. */
      readonly subject?: string;
      /** The token endpoint's URL by default. */
      readonly audience?: string;
      readonly claims: Readonly<Record<string, string>>;
    }
  | {
      readonly kind: 'google_service_account';
      /** The user in whose name the account acts. */
      readonly subject?: string;
      /** The token endpoint's URL by default. */
      readonly audience?: string;
    }
  | {
      readonly kind: 'github_app';
      /** The client id by default. */
      readonly issuer?: string;
      readonly repositories?: readonly string[];
      readonly permissions?: Readonly<Record<string, string>>;
    }
);

interface TokenExchangeGrant {
  readonly type: 'token_exchange';
  /** Absent if each request's own token is exchanged. */
  readonly subjectTokenFile?: string;
  /** A URI, as all token types (RFC 8693 §3). */
  readonly subjectTokenType: string;
  readonly actorTokenFile?: string;
  readonly actorTokenType?: string;
  readonly requestedTokenType?: string;
}

interface StaticGrant {
  readonly type: 'static';
  readonly tokenFile: string;
}

export type AssertionAlgorithm =
  | 'ES256'
  | 'ES384'
  | 'ES512'
  | 'RS256'
  | 'RS384'
  | 'RS512'
  | 'PS256'
  | 'PS384'
  | 'PS512'
  | 'EdDSA';

export type ProviderAddress =
  | { readonly tokenUrl: string; readonly issuerUrl?: undefined; readonly permitsClearText?: undefined }
  | {
      readonly issuerUrl: string;
      readonly tokenUrl?: undefined;
      /** The token endpoint may be http on another machine. */
      readonly permitsClearText?: true;
    }
  /** The token is mounted. */
  | {
      readonly issuerUrl?: undefined;
      readonly tokenUrl?: undefined;
      readonly permitsClearText?: undefined;
    };

export type CredentialConfig = CredentialSettings & ProviderAddress;

export interface CredentialSettings {
  readonly name: string;
  /** A mounted Secret. */
  readonly directory: string;
  /** Replaces the file `client_id`. */
  readonly clientId?: string;
  readonly clientAuth: ClientAuthentication;
  /** Client credentials by default. */
  readonly grant?: GrantConfig;
  /** The pod is ready without its token. */
  readonly required?: false;
  readonly output?: OutputConfig;
  /** Accepts missing or non-standard types. */
  readonly tokenType?: 'any';
  /** Tokens are bound to a key (RFC 9449). */
  readonly dpop?: DpopConfig;
  readonly scope?: string;
  readonly audience?: string;
  /** An array repeats the parameter. */
  readonly parameters: Readonly<Record<string, string | readonly string[]>>;
  /** With `tls_client_auth` the certificate is in the mounted credential. */
  readonly tls: Pick<TlsConfig, 'caFile' | 'serverName'>;
  /** Over TLS only. */
  readonly egressProxy?: EgressProxyConfig;
  /** Bounds one request to the token endpoint, to its last byte. */
  readonly requestTimeoutMs: number;
  /** How long a request may wait if no token is held and a grant is near. */
  readonly waitTimeoutMs: number;
  readonly renewal: RenewalPolicy;
}

export interface DpopConfig {
  /** In the credential's directory, PEM or JWK. By default the process makes a key of its own. */
  readonly keyFile?: string;
  /** A token of type Bearer is taken, and sent without a proof. */
  readonly allowsBearer: boolean;
}

interface OutputConfig {
  readonly file?: TokenFileConfig;
  /** Whether anyone on loopback may ask for it. */
  readonly endpoint: boolean;
}

export interface TokenFileConfig {
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
  /** A number; the process's own by default. */
  readonly group?: number;
}

export type Injection =
  /** @property scheme before the token, with a space. */
  | { readonly into: 'header'; readonly header: string; readonly scheme?: string }
  /** The app's own text, alone or after a scheme. */
  | { readonly into: 'placeholder'; readonly header: string; readonly placeholder: string }
  | { readonly into: 'query'; readonly parameter: string };

export interface ForwardingPolicy {
  /** The credential's name. */
  readonly credential: string;
  /** `Authorization: Bearer …` when absent. */
  readonly inject?: readonly Injection[];
  /** Applies to Authorization and to every place of `inject`. */
  readonly existingAuthorization: 'replace' | 'keep' | 'reject';
  readonly whenTokenUnavailable: 'fail' | 'passthrough';
  readonly retryOn401: boolean;
  readonly timeouts: RouteTimeouts;
  readonly tls: TlsConfig;
  /** Over TLS only: the token is not meant for the proxy. */
  readonly egressProxy?: EgressProxyConfig;
  readonly protocol: UpstreamProtocol;
}

/**
 * `auto`: over TLS the request's own, if the upstream speaks it; else HTTP/1.1. `h2c`: with prior knowledge
 * (RFC 9113 §3.3).
 */
export type UpstreamProtocol = 'auto' | 'http1' | 'h2' | 'h2c';

export interface RouteConfig extends ForwardingPolicy {
  readonly name: string;
  readonly match: {
    /** Lower-case; any host when absent. */
    readonly host?: string;
    /** Matches whole segments, like a Kubernetes Ingress `Prefix` path. */
    readonly pathPrefix: string;
  };
  readonly upstream: Upstream;
  /** Removes the matched prefix before the upstream's base path is added. */
  readonly stripPrefix: boolean;
}

export interface ForwardProxyConfig {
  /** First match wins. */
  readonly allow: readonly AllowedDestination[];
  /** Hosts that pass get no token. */
  readonly otherHosts: 'deny' | 'pass';
  /** Applies to listed hosts. With `intercept`, requests inside get the token. */
  readonly connect: 'deny' | 'tunnel' | 'intercept';
  /** Applies to hosts that are not on the list. */
  readonly timeouts: RouteTimeouts;
}

export interface GatewayConfig {
  readonly listen: ListenAddress;
  /** PEM files in one directory. */
  readonly tls: { readonly certFile: string; readonly keyFile: string };
  /** PEM, for callers' client certificates. */
  readonly clientCaFile?: string;
  /** This or `clientCaFile` is present. */
  readonly serviceAccountTokens?: { readonly audience: string };
  /** First match wins; names are unique. */
  readonly callers: readonly GatewayCaller[];
  /** How long new requests are accepted after the signal to end. */
  readonly drainDelayMs: number;
}

export interface GatewayCaller {
  /** A metric label. */
  readonly name: string;
  readonly match: CallerMatch;
  readonly routes: readonly string[];
  /** Applies to each matching caller. */
  readonly limits: CallerLimits;
}

export type CallerMatch =
  /** @property serviceAccount `*` for all of the namespace. */
  | { readonly kind: 'service_account'; readonly namespace: string; readonly serviceAccount: string }
  /** With `/*` at its end it matches all ids below. */
  | { readonly kind: 'spiffe'; readonly uri: string }
  /** A DNS name in any case; in certificates without one, the only common name. */
  | { readonly kind: 'certificate'; readonly name: string };

export interface CallerLimits {
  readonly inFlight: number;
  /** Unbounded by default. */
  readonly requestsPerSecond?: number;
  /** Requests at once after a quiet time; used with `requestsPerSecond`. */
  readonly burst: number;
  /** A quarter of all by default. */
  readonly connections?: number;
}

export interface CaptureConfig {
  /** Host, address and port are unique together. */
  readonly hosts: readonly CapturedHost[];
}

export interface CapturedHost extends ForwardingPolicy {
  /** Lower-case name. */
  readonly host: string;
  /** Loopback; IPv6 without brackets. */
  readonly address: string;
  /** Ports where TLS is expected. */
  readonly ports: readonly number[];
  /** Ports where clear-text HTTP is expected. */
  readonly clearPorts: readonly number[];
  /** Sends clear requests over TLS; port 80 becomes 443. */
  readonly upgradeToTls: boolean;
}

export interface RedirectConfig {
  /** A port of loopback. */
  readonly port: number;
  /** Names only; first match wins, other hosts pass. */
  readonly hosts: readonly AllowedDestination[];
  /** Applies to connections that pass. */
  readonly timeouts: RouteTimeouts;
}

interface InterceptionConfig {
  /** Gets `ca.crt`, `bundle.pem` and `truststore.p12` for apps. */
  readonly directory: string;
}

export interface AllowedDestination extends ForwardingPolicy {
  /** A name or address (IPv6 in brackets), lower-case, or `*.suffix` for all names below. */
  readonly host: string;
  /** The scheme's default if absent. */
  readonly port?: number;
  /** Sends `http://` requests over TLS, to port 443 if they named no port or 80. */
  readonly upgradeToTls: boolean;
}

export interface Upstream {
  readonly protocol: 'http' | 'https';
  /** IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** The value of the Host header (RFC 9110 §7.2). */
  readonly authority: string;
  /** Empty, or with a slash at its start, and none at its end. */
  readonly basePath: string;
  /** Whose hosts share lookups, such as an entry `*.suffix`; absent if the configuration named the host. */
  readonly party?: string;
}

export interface RouteTimeouts {
  /** Includes name resolution and TLS. */
  readonly connectMs: number;
  /** From the request's last byte to the answer's head. */
  readonly responseMs: number;
  /** Bounds an open body or tunnel without a byte in either direction. */
  readonly idleMs: number;
}

export interface ProxyLimits {
  /** The request line counts, too. */
  readonly headerBytes: number;
  readonly headerCount: number;
  readonly targetBytes: number;
  /** Larger bodies get 413; 0 means no limit. */
  readonly requestBodyBytes: number;
  /** Larger bodies are not replayed. */
  readonly replayBytes: number;
  /** Further requests get 503 `overloaded`. */
  readonly maxInFlight: number;
  /** Further ones get 503 `overloaded`; by default derived from the process's descriptors. */
  readonly maxConnections?: number;
  /** Bounds the arrival of a whole head. */
  readonly headerTimeoutMs: number;
  /** Bounds a connection without a request. */
  readonly keepAliveTimeoutMs: number;
  readonly http2: Http2Limits;
}

interface Http2Limits {
  /** Further streams are refused, to be retried. */
  readonly maxStreams: number;
  /** Bounds one request body, which is held until the upstream takes it. */
  readonly streamWindowBytes: number;
  /** Bounds all request bodies together. */
  readonly connectionWindowBytes: number;
}
