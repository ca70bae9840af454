/** The sidecar's configuration: resolved, checked and frozen. Durations are milliseconds, sizes bytes. */

import type { LogLevel } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import type { ClientAuthentication } from './client-authentication.ts';
import type { RenewalPolicy } from './renewal.ts';

export interface Config {
  /** For the app container. */
  readonly listen: ListenAddress;
  /** Probes, metrics, status page. */
  readonly admin: {
    readonly listen: ListenAddress;
    /**
     * Lower-case names under which the status page opens, besides loopback, addresses and the cluster's
     * names.
     */
    readonly hosts: readonly string[];
  };
  readonly logLevel: LogLevel;
  /** Names are unique; at least one. */
  readonly credentials: readonly CredentialConfig[];
  /** First match wins. */
  readonly routes: readonly RouteConfig[];
  /** For apps that set HTTP_PROXY. If absent, absolute-form requests and CONNECT are refused. */
  readonly forwardProxy?: ForwardProxyConfig;
  /** Hosts whose names lead to the sidecar's own listeners. */
  readonly capture?: CaptureConfig;
  /** Hosts whose connections the system redirects here. */
  readonly redirect?: RedirectConfig;
  /** Present if the command `gateway` serves other pods. */
  readonly gateway?: GatewayConfig;
  /** Present if TLS is intercepted. */
  readonly interception?: InterceptionConfig;
  /** Present if a credential hands out its tokens there. */
  readonly tokenEndpoint?: { readonly listen: ListenAddress };
  /** For requests that another site's page makes a browser send. */
  readonly crossSiteRequests: 'allow' | 'refuse';
  /** Absent if requests are not logged. */
  readonly accessLog?: AccessLogConfig;
  readonly limits: ProxyLimits;
  readonly shutdown: { readonly drainTimeoutMs: number };
}

export interface AccessLogConfig {
  readonly requests: 'errors' | 'all';
  /** From 0 to 1, of requests without an error. */
  readonly sample: number;
}

export interface TlsConfig {
  /** PEM. Replaces Node's roots and NODE_EXTRA_CA_CERTS. */
  readonly caFile?: string;
  /** PEM client certificate and its key; both or neither. */
  readonly certFile?: string;
  readonly keyFile?: string;
  /** Sent as SNI and checked in the certificate, instead of the URL's host. */
  readonly serverName?: string;
}

/** The operator's proxy for outgoing connections (CONNECT, RFC 9110 §9.3.6). */
export interface EgressProxyConfig {
  /** Name or address; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** A mounted Secret with `username` and `password`. */
  readonly credentialsDirectory?: string;
  /** Reached without it: names, `.suffix`, addresses, CIDR; lower-case. */
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
  /** If absent, each request's own token. */
  readonly subjectTokenFile?: string;
  /** A URI, like every token type here (RFC 8693 §3). */
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

/** A whole URL, or the issuer whose metadata names it. */
export type ProviderAddress =
  | { readonly tokenUrl: string; readonly issuerUrl?: undefined; readonly permitsClearText?: undefined }
  | {
      readonly issuerUrl: string;
      readonly tokenUrl?: undefined;
      /** The token endpoint named by the issuer may be http on another machine. */
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
  /** Instead of the file `client_id`. */
  readonly clientId?: string;
  readonly clientAuth: ClientAuthentication;
  /** Client credentials by default. */
  readonly grant?: GrantConfig;
  /** The pod is ready without its token; requests that need it wait, or fail. */
  readonly required?: false;
  readonly output?: OutputConfig;
  /** Accept tokens with a missing or non-standard type. */
  readonly tokenType?: 'any';
  readonly scope?: string;
  readonly audience?: string;
  /** An array is sent as a repeated parameter. */
  readonly parameters: Readonly<Record<string, string | readonly string[]>>;
  /** For `tls_client_auth`, the mounted credential holds the client certificate. */
  readonly tls: Pick<TlsConfig, 'caFile' | 'serverName'>;
  /** Over TLS only. */
  readonly egressProxy?: EgressProxyConfig;
  /** For one request to the token endpoint, to its last byte. */
  readonly requestTimeoutMs: number;
  /** How long a request may wait if no token is held and a grant is near. */
  readonly waitTimeoutMs: number;
  readonly renewal: RenewalPolicy;
}

interface OutputConfig {
  readonly file?: TokenFileConfig;
  /** Handed out on loopback to anyone who asks. */
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
  /** @property scheme precedes the token and a space, if present. */
  | { readonly into: 'header'; readonly header: string; readonly scheme?: string }
  /** The app's text in the field, alone or after a scheme, that the token replaces. */
  | { readonly into: 'placeholder'; readonly header: string; readonly placeholder: string }
  | { readonly into: 'query'; readonly parameter: string };

export interface ForwardingPolicy {
  /** Names the credential whose token is injected. */
  readonly credential: string;
  /** `Authorization: Bearer …` when absent. */
  readonly inject?: readonly Injection[];
  /** Applies to Authorization, and to every place that `inject` names. */
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
 * `auto`: over TLS the incoming request's protocol, if the upstream speaks it; else HTTP/1.1. `h2`: over TLS.
 * `h2c`: over TCP, with prior knowledge (RFC 9113 §3.3).
 */
export type UpstreamProtocol = 'auto' | 'http1' | 'h2' | 'h2c';

export interface RouteConfig extends ForwardingPolicy {
  readonly name: string;
  readonly match: {
    /** Lower-case, without port; any host when absent. */
    readonly host?: string;
    /** Matches whole path segments, like a Kubernetes Ingress `Prefix` path. */
    readonly pathPrefix: string;
  };
  readonly upstream: Upstream;
  /** Remove the matched prefix before the upstream's base path is added. */
  readonly stripPrefix: boolean;
}

export interface ForwardProxyConfig {
  /** First match wins. */
  readonly allow: readonly AllowedDestination[];
  /** Refuses other hosts, or forwards to them without a token. */
  readonly otherHosts: 'deny' | 'pass';
  /**
   * For listed hosts: refuse CONNECT, tunnel bytes without a token, or end TLS here so that requests get the
   * token.
   */
  readonly connect: 'deny' | 'tunnel' | 'intercept';
  /** For hosts that are not on the list. */
  readonly timeouts: RouteTimeouts;
}

export interface GatewayConfig {
  readonly listen: ListenAddress;
  /** PEM certificate with its chain, and its key, in the same directory. */
  readonly tls: { readonly certFile: string; readonly keyFile: string };
  /** PEM authorities whose client certificates prove callers. */
  readonly clientCaFile?: string;
  /** Proves callers by service account tokens of this cluster. At least this or `clientCaFile` is present. */
  readonly serviceAccountTokens?: { readonly audience: string };
  /** First match wins; others are refused. Names are unique. */
  readonly callers: readonly GatewayCaller[];
  /** How long new requests are accepted after the signal to end. */
  readonly drainDelayMs: number;
}

export interface GatewayCaller {
  /** A metric label. */
  readonly name: string;
  readonly match: CallerMatch;
  readonly routes: readonly string[];
  /** For each matching caller, not for all together. */
  readonly limits: CallerLimits;
}

export type CallerMatch =
  /** @property serviceAccount `*` for all of the namespace. */
  | { readonly kind: 'service_account'; readonly namespace: string; readonly serviceAccount: string }
  /** The whole id; with `/*` at its end, all ids below. */
  | { readonly kind: 'spiffe'; readonly uri: string }
  /** A DNS name of the certificate, in any case; if it has none, its only common name. */
  | { readonly kind: 'certificate'; readonly name: string };

export interface CallerLimits {
  readonly inFlight: number;
  /** Unbounded by default. */
  readonly requestsPerSecond?: number;
  /** Requests at once after a quiet time; used only with `requestsPerSecond`. */
  readonly burst: number;
  /** By default a quarter of `limits.connections`, or of what the process can have. */
  readonly connections?: number;
}

export interface CaptureConfig {
  /** Each combination of host, address and port appears once. */
  readonly hosts: readonly CapturedHost[];
}

/** Apps find it at a loopback address, where the sidecar listens. */
export interface CapturedHost extends ForwardingPolicy {
  /** Lower-case name. */
  readonly host: string;
  /** A loopback address; IPv6 without brackets. */
  readonly address: string;
  /** For TLS. */
  readonly ports: readonly number[];
  /** For clear-text HTTP. */
  readonly clearPorts: readonly number[];
  /** Send clear requests over TLS: to port 443 if they came to port 80. */
  readonly upgradeToTls: boolean;
}

export interface RedirectConfig {
  /** Of loopback. */
  readonly port: number;
  /** First match wins; names only. Other hosts pass unchanged. */
  readonly hosts: readonly AllowedDestination[];
  /** For connections that pass. */
  readonly timeouts: RouteTimeouts;
}

interface InterceptionConfig {
  /** Gets `ca.crt`, `bundle.pem` and `truststore.p12` for the app. */
  readonly directory: string;
}

export interface AllowedDestination extends ForwardingPolicy {
  /** Lower-case name or address (IPv6 in brackets), or `*.suffix` for all names below. */
  readonly host: string;
  /** Only this port; the scheme's default (80, 443) if absent. */
  readonly port?: number;
  /** Send `http://` requests over TLS, to port 443 if they named no port or 80. */
  readonly upgradeToTls: boolean;
}

export interface Upstream {
  readonly protocol: 'http' | 'https';
  /** As dialled; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Value of the Host header, with brackets and port if needed (RFC 9110 §7.2). */
  readonly authority: string;
  /** Empty, or starts with a slash and does not end with one. */
  readonly basePath: string;
  /** If an app named the host: its origin, such as an entry `*.suffix`, whose hosts share lookups. */
  readonly party?: string;
}

export interface RouteTimeouts {
  /** Name resolution, TCP and TLS together. */
  readonly connectMs: number;
  /** From the request's last byte to the answer's head. */
  readonly responseMs: number;
  /** Without a byte in either direction while a body or a tunnel is open. */
  readonly idleMs: number;
}

export interface ProxyLimits {
  /** Request line included. */
  readonly headerBytes: number;
  readonly headerCount: number;
  readonly targetBytes: number;
  /** Larger bodies are answered 413; 0 means no limit. */
  readonly requestBodyBytes: number;
  /** Up to this size a body is kept for a replay until the answer's head. */
  readonly replayBytes: number;
  /** Further requests are answered 503 `overloaded`. */
  readonly maxInFlight: number;
  /** Further connections are answered 503 `overloaded`; by default derived from the process's descriptors. */
  readonly maxConnections?: number;
  /** For a whole request head. */
  readonly headerTimeoutMs: number;
  /** For an app's connection without a request. */
  readonly keepAliveTimeoutMs: number;
  readonly http2: Http2Limits;
}

/** For each HTTP/2 connection of the app. */
interface Http2Limits {
  /** Further ones are refused, to be retried. */
  readonly maxStreams: number;
  /** Bytes of a request body that are held until the upstream takes them. */
  readonly streamWindowBytes: number;
  /** For all request bodies of the connection together. */
  readonly connectionWindowBytes: number;
}
