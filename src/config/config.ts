/** The sidecar's configuration: every setting resolved, checked and frozen. Durations are milliseconds, sizes bytes. */

import type { LogLevel } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import type { ClientAuthentication } from './client-authentication.ts';
import type { RenewalPolicy } from './renewal.ts';

export interface Config {
  /** Where the app container sends its requests. */
  readonly listen: ListenAddress;
  /** Probes, metrics, status page. */
  readonly admin: {
    readonly listen: ListenAddress;
    /** Lower-case names under which the status page may be opened, besides loopback, addresses and the cluster's names. */
    readonly hosts: readonly string[];
  };
  readonly logLevel: LogLevel;
  /** Names are unique; at least one. */
  readonly credentials: readonly CredentialConfig[];
  /** First match wins. */
  readonly routes: readonly RouteConfig[];
  /** For apps that set HTTP_PROXY; absolute-form requests and CONNECT are refused when absent. */
  readonly forwardProxy?: ForwardProxyConfig;
  /** Hosts whose names lead to the sidecar's own listeners. */
  readonly capture?: CaptureConfig;
  /** Hosts whose connections the system redirects here. */
  readonly redirect?: RedirectConfig;
  /** How callers of other pods connect. Present if the command `gateway` serves them. */
  readonly gateway?: GatewayConfig;
  /** Where interception leaves the certificates that apps have to trust. Present if TLS is intercepted. */
  readonly interception?: InterceptionConfig;
  /** Where programs of this pod request tokens. Present if a credential hands out its tokens there. */
  readonly tokenEndpoint?: { readonly listen: ListenAddress };
  /** What becomes of requests to the proxy listener that another site's page makes a browser send. */
  readonly crossSiteRequests: 'allow' | 'refuse';
  /** Absent if requests are not logged. */
  readonly accessLog?: AccessLogConfig;
  readonly limits: ProxyLimits;
  readonly shutdown: { readonly drainTimeoutMs: number };
}

/** Which requests leave a line in the log. */
export interface AccessLogConfig {
  readonly requests: 'errors' | 'all';
  /** The fraction of requests without an error that are logged, from 0 to 1. */
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

/** The operator's proxy for outgoing connections (CONNECT, RFC 9110 §9.3.6). */
export interface EgressProxyConfig {
  /** Name or address; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Directory of a mounted Secret with `username` and `password`. */
  readonly credentialsDirectory?: string;
  /** Destinations reached without it: names, `.suffix`, addresses, CIDR; lower-case. */
  readonly noProxy: readonly string[];
}

/** How a token is granted, with the settings of that grant. Files are names in the credential's directory. */
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
  /** The token of each request when absent. */
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

/** Where tokens are requested: at a whole URL, or where the issuer's metadata says. */
export type ProviderAddress =
  | { readonly tokenUrl: string; readonly issuerUrl?: undefined; readonly permitsClearText?: undefined }
  | {
      readonly issuerUrl: string;
      readonly tokenUrl?: undefined;
      /** The token endpoint named by the issuer may be http on another machine. */
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
  /** The client credentials grant by default. */
  readonly grant?: GrantConfig;
  /** The pod starts and is ready without its token; requests that need the token wait, or fail, as usual. */
  readonly required?: false;
  /** How the token is handed out beside the proxy. */
  readonly output?: OutputConfig;
  /** Accept tokens whose type is missing, or a name of the provider's own. */
  readonly tokenType?: 'any';
  readonly scope?: string;
  readonly audience?: string;
  /** Further parameters of the grant; an array is sent as a repeated parameter. */
  readonly parameters: Readonly<Record<string, string | readonly string[]>>;
  /** With `tls_client_auth`, the client certificate comes from the mounted credential. */
  readonly tls: Pick<TlsConfig, 'caFile' | 'serverName'>;
  /** Between here and the provider; over TLS only. */
  readonly egressProxy?: EgressProxyConfig;
  /** Bounds one request to the token endpoint, from connecting to the last byte. */
  readonly requestTimeoutMs: number;
  /** How long a request may wait for a token if none is held and a grant is near. */
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
  /** Number of the group that gets the file; the process's own by default. */
  readonly group?: number;
}

/** A place in a request where a token is put. */
export type Injection =
  /** @property scheme precedes the token, with a space; the token stands alone if absent. */
  | { readonly into: 'header'; readonly header: string; readonly scheme?: string }
  /** The text that an app puts into a field, alone or after a scheme, where it wants the token. */
  | { readonly into: 'placeholder'; readonly header: string; readonly placeholder: string }
  | { readonly into: 'query'; readonly parameter: string };

/** How a request is forwarded to an upstream, however the upstream was found. */
export interface ForwardingPolicy {
  /** Name of the credential whose token is injected. */
  readonly credential: string;
  /** Where the token goes; `Authorization: Bearer …` when absent. */
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
 * The protocol to the upstream. `auto`: over TLS the protocol of the incoming request, if the upstream speaks it; else
 * HTTP/1.1. `h2`: HTTP/2 over TLS. `h2c`: HTTP/2 over TCP, with prior knowledge (RFC 9113 §3.3).
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
  /** Remove the matched prefix before the upstream's base path is added. */
  readonly stripPrefix: boolean;
}

export interface ForwardProxyConfig {
  /** First match wins. */
  readonly allow: readonly AllowedDestination[];
  /** What becomes of a host that is not on the list: refused, or forwarded without a token. */
  readonly otherHosts: 'deny' | 'pass';
  /**
   * What becomes of a CONNECT to a listed host: it is refused, tunnelled as bytes without a token, or its TLS ends here
   * and the requests inside get the token.
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
  /** Present if service account tokens of this cluster prove callers. At least one of `clientCaFile` and this is present. */
  readonly serviceAccountTokens?: { readonly audience: string };
  /** First match wins; a caller without a match is refused. Names are unique. */
  readonly callers: readonly GatewayCaller[];
  /** How long new requests are accepted after the signal to end, while clients learn of it. */
  readonly drainDelayMs: number;
}

export interface GatewayCaller {
  /** The entry's name: a metric label. */
  readonly name: string;
  readonly match: CallerMatch;
  /** Names of the routes that it may use. */
  readonly routes: readonly string[];
  /** For each matching caller, not for all of them together. */
  readonly limits: CallerLimits;
}

/** Which callers an entry is for: one, or several of a kind. */
export type CallerMatch =
  /** @property serviceAccount `*` for all of the namespace. */
  | { readonly kind: 'service_account'; readonly namespace: string; readonly serviceAccount: string }
  /** The whole id; with `/*` at its end, all ids below. */
  | { readonly kind: 'spiffe'; readonly uri: string }
  /** One of the certificate's DNS names, in any case; if it has none, its only common name. */
  | { readonly kind: 'certificate'; readonly name: string };

export interface CallerLimits {
  readonly inFlight: number;
  /** Unbounded by default. */
  readonly requestsPerSecond?: number;
  /** Requests that may come at once after a quiet time; used only with `requestsPerSecond`. */
  readonly burst: number;
  /** By default a quarter of `limits.connections`, or of what the process can have. */
  readonly connections?: number;
}

export interface CaptureConfig {
  /** Each combination of host, address and port appears once. */
  readonly hosts: readonly CapturedHost[];
}

/** A host that apps find at a loopback address, where the sidecar listens in its place. */
export interface CapturedHost extends ForwardingPolicy {
  /** Lower-case name. */
  readonly host: string;
  /** A loopback address; IPv6 without brackets. */
  readonly address: string;
  /** Ports where TLS is expected. */
  readonly ports: readonly number[];
  /** Ports where clear-text HTTP is expected. */
  readonly clearPorts: readonly number[];
  /** Send requests that came in clear over TLS: to port 443 if they came to port 80. */
  readonly upgradeToTls: boolean;
}

export interface RedirectConfig {
  /** The loopback port to which connections are redirected. */
  readonly port: number;
  /** First match wins; names only. Other hosts pass unchanged. */
  readonly hosts: readonly AllowedDestination[];
  /** For connections that pass. */
  readonly timeouts: RouteTimeouts;
}

interface InterceptionConfig {
  /** Gets `ca.crt`, `bundle.pem` and `truststore.p12`: usually in memory, and read by the app. */
  readonly directory: string;
}

export interface AllowedDestination extends ForwardingPolicy {
  /** Lower-case name or address (IPv6 in brackets), or `*.suffix` for all names below the suffix. */
  readonly host: string;
  /** Only this port; the scheme's default (80, 443) if absent. */
  readonly port?: number;
  /** Send `http://` requests over TLS, to port 443 if they named no port or 80. */
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
  /** The origin of a host that an app has named, such as an entry `*.suffix`: its hosts share lookups. The configuration named it if absent. */
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
  /** Connections of the app before new ones are answered 503 `overloaded`; by default derived from the process's descriptors. */
  readonly maxConnections?: number;
  /** A connection must deliver a whole request head within this time. */
  readonly headerTimeoutMs: number;
  /** An app-side connection without a request is closed after this. */
  readonly keepAliveTimeoutMs: number;
  readonly http2: Http2Limits;
}

/** For each HTTP/2 connection of the app. */
interface Http2Limits {
  /** Concurrent requests; more are refused, to be retried. */
  readonly maxStreams: number;
  /** Bytes of a request body that the app may send ahead of the upstream; they are held until the upstream takes them. */
  readonly streamWindowBytes: number;
  /** The same for all request bodies of the connection together. */
  readonly connectionWindowBytes: number;
}
