/**
 * What the sidecar runs by: every setting resolved, checked and frozen. Durations are milliseconds, sizes bytes.
 */

import type { LogLevel } from '../log/logger.ts';

export interface Config {
  /** Where the app container sends its requests. */
  readonly listen: ListenAddress;
  /** Probes, metrics, status page. */
  readonly admin: {
    readonly listen: ListenAddress;
    /** Names, lower-case, by which people may come for the status page besides loopback, addresses and the cluster's. */
    readonly hosts: readonly string[];
  };
  readonly logLevel: LogLevel;
  /** Names are unique; at least one. */
  readonly credentials: readonly CredentialConfig[];
  /** First match wins. */
  readonly routes: readonly RouteConfig[];
  /** For apps that set HTTP_PROXY; absolute-form requests and CONNECT are refused when absent. */
  readonly forwardProxy?: ForwardProxyConfig;
  /** Hosts whose names lead to listeners of the sidecar's own. */
  readonly capture?: CaptureConfig;
  /** Hosts whose connections the system redirects here. */
  readonly redirect?: RedirectConfig;
  /** How callers of other pods come in. Present where the command `gateway` serves them. */
  readonly gateway?: GatewayConfig;
  /** Where interception leaves the certificates that apps are to trust. Present where TLS is intercepted. */
  readonly interception?: InterceptionConfig;
  /** Where programs of this pod ask for tokens. Present where a credential gives its own there. */
  readonly tokenEndpoint?: { readonly listen: ListenAddress };
  /** What becomes of requests on the proxy listener that the page of another site makes a browser send. */
  readonly crossSiteRequests: 'allow' | 'refuse';
  /** Absent where requests are not logged. */
  readonly accessLog?: AccessLogConfig;
  readonly limits: ProxyLimits;
  readonly shutdown: { readonly drainTimeoutMs: number };
}

export interface ListenAddress {
  readonly host: string;
  /** 0 lets the system pick one. */
  readonly port: number;
}

/** Which requests leave a line in the log. */
export interface AccessLogConfig {
  readonly requests: 'errors' | 'all';
  /** The part of those without an error that does, from 0 to 1. */
  readonly sample: number;
}

export interface TlsConfig {
  /** PEM certificates trusted instead of Node's own and those of NODE_EXTRA_CA_CERTS. */
  readonly caFile?: string;
  /** PEM client certificate and its key; both or neither. */
  readonly certFile?: string;
  readonly keyFile?: string;
  /** Name sent as SNI and checked in the certificate, instead of the URL's host. */
  readonly serverName?: string;
}

/** A proxy of the operator's that lets connections out (CONNECT, RFC 9110 §9.3.6). */
export interface EgressProxyConfig {
  /** Name or address; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Directory of a mounted Secret with `username` and `password`. */
  readonly credentialsDirectory?: string;
  /** What is reached without it: names, `.suffix`, addresses, CIDR; lower-case. */
  readonly noProxy: readonly string[];
}

/** How the client proves itself, with what only this method needs. Files are names in the credential's directory. */
export type ClientAuthentication =
  | { readonly method: 'client_secret_basic'; readonly encoding: 'form' | 'raw' }
  | { readonly method: 'client_secret_post' }
  | PrivateKeyJwt
  | { readonly method: 'tls_client_auth' }
  | { readonly method: 'kubernetes_jwt'; readonly tokenFile: string }
  /** The grant is proof enough. */
  | { readonly method: 'none' };

/** By what a token is granted, with what only this grant needs. Files are names in the credential's directory. */
export type GrantConfig = JwtBearerGrant | TokenExchangeGrant | StaticGrant;

export type JwtBearerGrant = { readonly type: 'jwt_bearer'; readonly keyFile: string } & (
  | {
      readonly kind: 'rfc7523';
      readonly certificateFile?: string;
      readonly keyId?: string;
      readonly algorithm?: AssertionAlgorithm;
      /** The client id when absent. */
      readonly issuer?: string;
      /** The issuer when absent. */
      readonly subject?: string;
      /** The token endpoint's URL when absent. */
      readonly audience?: string;
      readonly claims: Readonly<Record<string, string>>;
    }
  | {
      readonly kind: 'google_service_account';
      /** In whose name the account acts. */
      readonly subject?: string;
      /** The token endpoint's URL when absent. */
      readonly audience?: string;
    }
  | {
      readonly kind: 'github_app';
      /** The client id when absent. */
      readonly issuer?: string;
      readonly repositories?: readonly string[];
      readonly permissions?: Readonly<Record<string, string>>;
    }
);

export interface TokenExchangeGrant {
  readonly type: 'token_exchange';
  /** The token of each request when absent. */
  readonly subjectTokenFile?: string;
  /** URIs, as all types of tokens here (RFC 8693 §3). */
  readonly subjectTokenType: string;
  readonly actorTokenFile?: string;
  readonly actorTokenType?: string;
  readonly requestedTokenType?: string;
}

export interface StaticGrant {
  readonly type: 'static';
  readonly tokenFile: string;
}

export interface PrivateKeyJwt {
  readonly method: 'private_key_jwt';
  /** PEM or JWK. */
  readonly keyFile: string;
  /** PEM. Its thumbprint names the key. */
  readonly certificateFile?: string;
  /** Instead of the JWK's own, or the key's thumbprint. */
  readonly keyId?: string;
  /** Instead of the JWK's own, or the usual one of the key's type. */
  readonly algorithm?: AssertionAlgorithm;
  /** The assertion's `aud`; the token endpoint's URL when absent. */
  readonly audience?: string;
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

/** Where tokens are asked for: at a whole URL, or where the issuer's metadata says. */
export type ProviderAddress =
  | { readonly tokenUrl: string; readonly issuerUrl?: undefined; readonly permitsClearText?: undefined }
  | {
      readonly issuerUrl: string;
      readonly tokenUrl?: undefined;
      /** The token endpoint that the issuer names may be http on another machine. */
      readonly permitsClearText?: true;
    }
  /** Nowhere: the token is mounted. */
  | {
      readonly issuerUrl?: undefined;
      readonly tokenUrl?: undefined;
      readonly permitsClearText?: undefined;
    };

export type CredentialConfig = CredentialSettings & ProviderAddress;

export interface CredentialSettings {
  readonly name: string;
  /** Directory of the mounted Secret. */
  readonly directory: string;
  /** Instead of the file `client_id`. */
  readonly clientId?: string;
  readonly clientAuth: ClientAuthentication;
  /** The client credentials grant when absent. */
  readonly grant?: GrantConfig;
  /** The pod starts and is ready without its token; requests that want it wait, or fail, as ever. */
  readonly required?: false;
  /** How the token is handed out beside the proxy. */
  readonly output?: OutputConfig;
  /** Take tokens whose type is not said, or is a name of the provider's own. */
  readonly tokenType?: 'any';
  readonly scope?: string;
  readonly audience?: string;
  /** Further parameters of the grant; an array is sent as a repeated parameter. */
  readonly parameters: Readonly<Record<string, string | readonly string[]>>;
  /** A client certificate is the mounted credential's, with `tls_client_auth`. */
  readonly tls: Pick<TlsConfig, 'caFile' | 'serverName'>;
  /** Between here and the provider; over TLS alone. */
  readonly egressProxy?: EgressProxyConfig;
  /** Bound on one request to the token endpoint, from connecting to the last byte. */
  readonly requestTimeoutMs: number;
  /** How long a request may wait for a token when none is held and a grant is near. */
  readonly waitTimeoutMs: number;
  readonly renewal: RenewalPolicy;
}

export interface OutputConfig {
  readonly file?: TokenFileConfig;
  /** Given on loopback to who asks for it. */
  readonly endpoint: boolean;
}

export interface TokenFileConfig {
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
  /** Number of the group that gets it; the process's own when absent. */
  readonly group?: number;
}

export interface RenewalPolicy {
  /** Fraction of the lifetime after which the token is renewed. */
  readonly at: number;
  /** Up to this fraction of the lifetime is taken off at random, so that a fleet does not move in step. */
  readonly jitter: number;
  /** The first grant is delayed by up to this much at random. */
  readonly startupJitterMs: number;
  /** No renewal sooner than this after the last grant. */
  readonly minIntervalMs: number;
  /** While no token is held, no more than this from one attempt to the next; rejected credentials aside. */
  readonly recoveryMs: number;
  /** After a failure no attempt sooner than this, whatever is random about it; not at all unless given. */
  readonly shortestRetryMs?: number;
  /** Lifetime of a token that comes with none and is no JWT. */
  readonly defaultLifetimeMs: number;
}

/** A place of a request that a token is put into. */
export type Injection =
  /** @property scheme before the token, and a space; the token stands alone when absent. */
  | { readonly into: 'header'; readonly header: string; readonly scheme?: string }
  /** The text that an app puts into a field, alone or behind a scheme, where it wants the token. */
  | { readonly into: 'placeholder'; readonly header: string; readonly placeholder: string }
  | { readonly into: 'query'; readonly parameter: string };

/** What is done with a request on its way to an upstream, however the upstream was found. */
export interface ForwardingPolicy {
  /** Name of the credential whose token is injected. */
  readonly credential: string;
  /** Where the token goes; `Authorization: Bearer …` when absent. */
  readonly inject?: readonly Injection[];
  /** Of Authorization, and of every place that `inject` names. */
  readonly existingAuthorization: 'replace' | 'keep' | 'reject';
  readonly whenTokenUnavailable: 'fail' | 'passthrough';
  readonly retryOn401: boolean;
  readonly timeouts: RouteTimeouts;
  readonly tls: TlsConfig;
  /** Over TLS alone: a proxy is no end of the token's way. */
  readonly egressProxy?: EgressProxyConfig;
  readonly protocol: UpstreamProtocol;
}

/**
 * What is spoken to an upstream. `auto`: over TLS what a request came by, if the upstream speaks that; else HTTP/1.1. `h2`:
 * HTTP/2 over TLS. `h2c`: HTTP/2 over TCP, without asking first (RFC 9113 §3.3).
 */
export type UpstreamProtocol = 'auto' | 'http1' | 'h2' | 'h2c';

export interface RouteConfig extends ForwardingPolicy {
  readonly name: string;
  readonly match: {
    /** Lower-case host name without port; any host when absent. */
    readonly host?: string;
    /** Matched by whole path segments, like a Kubernetes Ingress `Prefix` path. */
    readonly pathPrefix: string;
  };
  readonly upstream: Upstream;
  /** Take the matched prefix off before the upstream's base path is put on. */
  readonly stripPrefix: boolean;
}

export interface ForwardProxyConfig {
  /** First match wins. */
  readonly allow: readonly AllowedDestination[];
  /** What becomes of a host that is not on the list: refused, or forwarded without a token. */
  readonly otherHosts: 'deny' | 'pass';
  /**
   * What becomes of a CONNECT to a listed host: it is refused, tunnelled as bytes without a token, or its TLS ends here and
   * what is asked inside of it gets the token.
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
  /** Present where service account tokens of this cluster prove callers; one of the two is. */
  readonly serviceAccountTokens?: { readonly audience: string };
  /** First match wins; who matches none is refused. Names are unique. */
  readonly callers: readonly GatewayCaller[];
  /** How long requests come in after the program was told to end, while others learn that it does. */
  readonly leaveDelayMs: number;
}

export interface GatewayCaller {
  /** Of the entry: a metric label. */
  readonly name: string;
  readonly match: CallerMatch;
  /** Names of routes that it may use. */
  readonly routes: readonly string[];
  /** For each caller that matches, not for all of them together. */
  readonly limits: CallerLimits;
}

/** Which callers an entry is for: one, or several of a kind. */
export type CallerMatch =
  /** @property serviceAccount `*` for all of the namespace. */
  | { readonly kind: 'service_account'; readonly namespace: string; readonly serviceAccount: string }
  /** The whole id, or with `/*` at its end all ids below. */
  | { readonly kind: 'spiffe'; readonly uri: string }
  /** One of the certificate's DNS names, in any case; where it has none, its one common name. */
  | { readonly kind: 'certificate'; readonly name: string };

export interface CallerLimits {
  readonly inFlight: number;
  /** No bound when absent. */
  readonly requestsPerSecond?: number;
  /** Requests that may come at once after a quiet time; there where `requestsPerSecond` is. */
  readonly burst: number;
  /** A quarter of `limits.connections`, or of what the process can have, when absent. */
  readonly connections?: number;
}

export interface CaptureConfig {
  /** Each host, address and port once. */
  readonly hosts: readonly CapturedHost[];
}

/** A host that apps find at an address of loopback, where the sidecar listens in its place. */
export interface CapturedHost extends ForwardingPolicy {
  /** Lower-case name. */
  readonly host: string;
  /** Of loopback; IPv6 without brackets. */
  readonly address: string;
  /** Where TLS is expected. */
  readonly ports: readonly number[];
  /** Where HTTP in clear is. */
  readonly clearPorts: readonly number[];
  /** Send what came in clear over TLS, to port 443 where it came to 80. */
  readonly upgradeToTls: boolean;
}

export interface RedirectConfig {
  /** Of loopback, where redirected connections come. */
  readonly port: number;
  /** First match wins; names alone. Other hosts pass as they are. */
  readonly hosts: readonly AllowedDestination[];
  /** For what passes. */
  readonly timeouts: RouteTimeouts;
}

export interface InterceptionConfig {
  /** Gets `ca.crt`, `bundle.pem` and `truststore.p12`: in memory, as a rule, and read by the app. */
  readonly directory: string;
}

export interface AllowedDestination extends ForwardingPolicy {
  /** Lower-case name or address (IPv6 in brackets), or `*.suffix` for all names below the suffix. */
  readonly host: string;
  /** Only this port; the scheme's own (80, 443) when absent. */
  readonly port?: number;
  /** Send what was asked for as `http://` over TLS, to port 443 where no port or 80 was named. */
  readonly upgradeToTls: boolean;
}

export interface Upstream {
  readonly protocol: 'http' | 'https';
  /** Host name or address as dialled; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Value of the Host header: brackets and port where HTTP wants them (RFC 9110 §7.2). */
  readonly authority: string;
  /** Put before the request's path; empty, or starts with a slash and does not end with one. */
  readonly basePath: string;
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
  /** Whole request header section, request line included. */
  readonly headerBytes: number;
  readonly headerCount: number;
  readonly targetBytes: number;
  /** Larger request bodies are answered 413; 0 means no limit. */
  readonly requestBodyBytes: number;
  /** A request body up to this size is kept until the answer's head, so that it can be replayed. */
  readonly replayBytes: number;
  /** Requests in flight before new ones are answered 503 `overloaded`. */
  readonly maxInFlight: number;
  /** Connections of the app before new ones are answered 503 `overloaded`; by the process's descriptors when absent. */
  readonly maxConnections?: number;
  /** A connection must deliver a whole request head within this time. */
  readonly headerTimeoutMs: number;
  /** An app-side connection without a request is closed after this. */
  readonly keepAliveTimeoutMs: number;
  readonly http2: Http2Limits;
}

/** Of each connection of the app that speaks HTTP/2. */
export interface Http2Limits {
  /** Requests at once; more are refused, to be tried again. */
  readonly maxStreams: number;
  /** Bytes of a request body that the app may send ahead of the upstream, which are held until that takes them. */
  readonly streamWindowBytes: number;
  /** The same of all request bodies of the connection together. */
  readonly connectionWindowBytes: number;
}
