/**
 * The configuration file: its shape, its defaults and its words, in one schema. The JSON Schema that is published
 * with the package is generated from it (`npm run generate`).
 */

import * as v from 'valibot';
import { LOG_LEVELS } from '../platform/log/logger.ts';
import { ACCESS_LOGS } from './access-logs.ts';
import type { AssertionAlgorithm } from './config.ts';
import { UPSTREAM_PROTOCOLS } from './upstream-protocol.ts';
import {
  duration,
  exactName,
  listenAddress,
  loopbackAddress,
  MAX_NAMED_HOSTS,
  recoveryTime,
  serverUrl,
  size,
  tokenEndpointUrl,
  upstream,
  type ValueFormat,
  windowSize,
} from './values.ts';

/** A string in one of the formats of `values.ts`. */
function formatted<T>(format: ValueFormat<T>) {
  return v.pipe(
    v.string(format.expected),
    v.check((text) => format.parse(text) !== undefined, format.expected),
    v.metadata({ description: `Expected: ${format.expected}.` }),
    v.transform((text) => format.parse(text) as T),
  );
}

/** A URL kept as written. */
function asWritten({ expected, parse }: ValueFormat<URL>) {
  return v.pipe(
    v.string(expected),
    v.check((text) => parse(text) !== undefined, expected),
  );
}

const url = asWritten(serverUrl);

function words<const Word extends string>(options: readonly Word[]) {
  return v.picklist(options, `one of ${options.join(', ')}`);
}

function fraction(from: number, to: number) {
  const expected = `a number from ${from} to ${to}`;
  return v.pipe(v.number(expected), v.minValue(from, expected), v.maxValue(to, expected));
}

const count = v.pipe(
  v.number('a whole number of at least 1'),
  v.integer('a whole number of at least 1'),
  v.minValue(1, 'a whole number of at least 1'),
);

function wholeNumber(from: number, to: number, expected = `a whole number from ${from} to ${to}`) {
  return v.pipe(
    v.number(expected),
    v.integer(expected),
    v.minValue(from, expected),
    v.maxValue(to, expected),
  );
}

const flag = v.boolean('true or false');
const text = v.pipe(v.string('a string'), v.nonEmpty('a string that is not empty'));
const path = v.pipe(v.string('an absolute path'), v.startsWith('/', 'an absolute path'));

/** Names become metric labels and log fields: short and plain. */
const NAME = 'a name of 1 to 63 lower-case letters, digits and dashes';
const name = v.pipe(v.string(NAME), v.regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, NAME));

const PREFIX = 'a path that starts with / and has no empty, "." or ".." segment, query or percent-encoding';
const pathPrefix = v.pipe(
  v.string(PREFIX),
  v.regex(/^\/(?:(?!\.{1,2}(?:\/|$))[A-Za-z0-9\-._~!$&'()*+,;=:@]+(?:\/|$))*$/, PREFIX),
);

const HOST = 'a host name or address without port';
const host = v.pipe(v.string(HOST), v.regex(/^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$/, HOST));

const PARAMETER_VALUE = 'a string or a list of strings';
const parameterValue = v.union(
  [v.string(PARAMETER_VALUE), v.array(v.string(PARAMETER_VALUE))],
  PARAMETER_VALUE,
);

/** A key of a Secret (Kubernetes refuses others), which becomes a file in its volume. */
const FILE_NAME = 'a file name in dir: letters, digits, dots, dashes and underscores';
export const fileName = v.pipe(
  v.string(FILE_NAME),
  v.regex(/^(?!\.\.|\.$)[A-Za-z0-9._-]{1,253}$/, FILE_NAME),
);

const CLIENT_AUTHENTICATION_METHODS = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'tls_client_auth',
  'kubernetes_jwt',
  'none',
] as const;

const GRANTS = ['client_credentials', 'jwt_bearer', 'token_exchange', 'static'] as const;

const ASSERTION_ALGORITHMS = [
  'ES256',
  'ES384',
  'ES512',
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'EdDSA',
] as const satisfies readonly AssertionAlgorithm[];

const assertion = v.strictObject(
  {
    keyFile: v.optional(fileName),
    certificateFile: v.optional(fileName),
    keyId: v.optional(text),
    algorithm: v.optional(words(ASSERTION_ALGORITHMS)),
    audience: v.optional(text),
    tokenFile: v.optional(fileName),
  },
  'a mapping',
);

const jwtBearer = v.strictObject(
  {
    kind: v.optional(words(['rfc7523', 'google_service_account', 'github_app'])),
    keyFile: v.optional(fileName),
    certificateFile: v.optional(fileName),
    keyId: v.optional(text),
    algorithm: v.optional(words(ASSERTION_ALGORITHMS)),
    issuer: v.optional(text),
    subject: v.optional(text),
    audience: v.optional(text),
    claims: v.optional(v.record(v.string(), text, 'a mapping of claims to strings')),
    repositories: v.optional(v.array(text, 'a list of names')),
    permissions: v.optional(v.record(v.string(), text, 'a mapping of permissions to strings')),
  },
  'a mapping',
);

const TOKEN_TYPE = 'access_token, id_token, refresh_token, jwt, saml1, saml2 or a URI';
const tokenTypeUri = v.pipe(
  v.string(TOKEN_TYPE),
  v.regex(/^(?:access_token|id_token|refresh_token|jwt|saml[12]|[a-z][a-z0-9+.-]*:\S+)$/, TOKEN_TYPE),
);

const tokenExchange = v.strictObject(
  {
    subjectTokenFrom: v.optional(words(['file', 'request'])),
    subjectTokenFile: v.optional(fileName),
    subjectTokenType: v.optional(tokenTypeUri),
    actorTokenFile: v.optional(fileName),
    actorTokenType: v.optional(tokenTypeUri),
    requestedTokenType: v.optional(tokenTypeUri),
  },
  'a mapping',
);

const staticToken = v.strictObject({ tokenFile: v.optional(fileName) }, 'a mapping');

const credentialTls = v.strictObject({ caFile: v.optional(path), serverName: v.optional(text) }, 'a mapping');

const routeTls = v.strictObject(
  {
    caFile: v.optional(path),
    certFile: v.optional(path),
    keyFile: v.optional(path),
    serverName: v.optional(text),
  },
  'a mapping',
);

const MODE = 'permission bits in octal, in quotes, such as "0640"; nobody may execute it';
const GROUP = 'the number of a group, from 0 to 4294967294';
const egressProxy = v.strictObject(
  {
    url: v.optional(v.string('a URL')),
    credentialsDir: v.optional(path),
    noProxy: v.optional(
      v.pipe(v.array(text, 'a list of hosts'), v.maxLength(100, 'a list of at most 100 hosts')),
    ),
  },
  'a mapping',
);

export const output = v.strictObject(
  {
    file: v.optional(v.pipe(path, v.regex(/[^/]$/, 'an absolute path of a file'))),
    mode: v.optional(v.pipe(v.string(MODE), v.regex(/^0?[046]{3}$/, MODE))),
    group: v.optional(wholeNumber(0, 2 ** 32 - 2, GROUP)),
    endpoint: v.optional(flag),
  },
  'a mapping',
);

export const credential = v.strictObject(
  {
    name,
    authUrl: v.optional(url),
    realm: v.optional(text),
    tokenUrl: v.optional(asWritten(tokenEndpointUrl)),
    issuerUrl: v.optional(url),
    allowInsecureTokenUrl: v.optional(flag),
    dir: v.optional(path),
    clientId: v.optional(text),
    clientAuth: v.optional(words(CLIENT_AUTHENTICATION_METHODS)),
    assertion: v.optional(assertion),
    grant: v.optional(words(GRANTS)),
    jwtBearer: v.optional(jwtBearer),
    tokenExchange: v.optional(tokenExchange),
    static: v.optional(staticToken),
    basicEncoding: v.optional(words(['form', 'raw'])),
    required: v.optional(flag),
    output: v.optional(output),
    tokenType: v.optional(words(['bearer', 'any'])),
    scope: v.optional(text),
    audience: v.optional(text),
    parameters: v.optional(v.record(v.string(), parameterValue, 'a mapping of parameter names to values')),
    tls: v.optional(credentialTls),
    egressProxy: v.optional(egressProxy),
    timeouts: v.optional(
      v.strictObject(
        { request: v.optional(formatted(duration)), wait: v.optional(formatted(duration)) },
        'a mapping',
      ),
    ),
    renewal: v.optional(
      v.strictObject(
        {
          at: v.optional(fraction(0.1, 0.95)),
          jitter: v.optional(fraction(0, 0.5)),
          startupJitter: v.optional(formatted(duration)),
          minInterval: v.optional(formatted(duration)),
          recovery: v.optional(formatted(recoveryTime)),
          defaultLifetime: v.optional(formatted(duration)),
          zeroLifetime: v.optional(words(['refused', 'endless'])),
        },
        'a mapping',
      ),
    ),
  },
  'a mapping',
);

const FIELD_NAME = 'the name of a header, such as X-Api-Key';
const SCHEME = 'a word that goes before the token, such as Bearer; "" for none';
const PARAMETER_NAME = 'the name of a query parameter: letters, digits, dots, dashes and underscores';
const PLACEHOLDER = 'a text of 4 to 128 visible ASCII characters without spaces, such as {{payments}}';

export const injection = v.strictObject(
  {
    header: v.optional(
      v.pipe(v.string(FIELD_NAME), v.regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, FIELD_NAME)),
    ),
    scheme: v.optional(v.pipe(v.string(SCHEME), v.regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{0,64}$/, SCHEME))),
    placeholder: v.optional(v.pipe(v.string(PLACEHOLDER), v.regex(/^[!-~]{4,128}$/, PLACEHOLDER))),
    query: v.optional(v.pipe(v.string(PARAMETER_NAME), v.regex(/^[A-Za-z0-9._-]{1,64}$/, PARAMETER_NAME))),
  },
  'a mapping',
);

const INJECTIONS = 'a mapping, or a list of 1 to 8 mappings, of header, scheme, placeholder and query';
const injections = v.union(
  [injection, v.pipe(v.array(injection), v.minLength(1, INJECTIONS), v.maxLength(8, INJECTIONS))],
  INJECTIONS,
);

const timeouts = v.strictObject(
  {
    connect: v.optional(formatted(duration)),
    response: v.optional(formatted(duration)),
    idle: v.optional(formatted(duration)),
  },
  'a mapping',
);

/** The settings that a route and a destination of the forward proxy share. */
const forwardingPolicy = {
  credential: v.optional(name),
  inject: v.optional(injections),
  existingAuthorization: v.optional(words(['replace', 'keep', 'reject'])),
  whenTokenUnavailable: v.optional(words(['fail', 'passthrough'])),
  retryOn401: v.optional(flag),
  timeouts: v.optional(timeouts),
  tls: v.optional(routeTls),
  egressProxy: v.optional(egressProxy),
  protocol: v.optional(words(UPSTREAM_PROTOCOLS)),
};

export const route = v.strictObject(
  {
    name,
    match: v.optional(
      v.strictObject({ host: v.optional(host), pathPrefix: v.optional(pathPrefix) }, 'a mapping'),
    ),
    upstream: v.optional(formatted(upstream)),
    stripPrefix: v.optional(flag),
    ...forwardingPolicy,
  },
  'a mapping',
);

const ALLOWED_HOST = 'a host name such as api.example.com, or *.example.com for all names below it';
const allowedHost = v.pipe(
  v.string(ALLOWED_HOST),
  v.regex(/^(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?$|^\[[0-9A-Fa-f:.]+\]$/, ALLOWED_HOST),
);

const port = wholeNumber(1, 65_535, 'a port from 1 to 65535');

export const allowedDestination = v.strictObject(
  {
    host: allowedHost,
    port: v.optional(port),
    allowClearText: v.optional(flag),
    upgradeToTls: v.optional(flag),
    ...forwardingPolicy,
  },
  'a mapping',
);

const forwardProxy = v.strictObject(
  {
    allow: v.pipe(
      v.array(allowedDestination, 'a list of hosts'),
      v.minLength(1, 'a list of at least one host'),
    ),
    otherHosts: v.optional(words(['deny', 'pass'])),
    connect: v.optional(words(['deny', 'tunnel', 'intercept'])),
  },
  'a mapping',
);

const CAPTURED_HOSTS = `a list of 1 to ${MAX_NAMED_HOSTS} hosts`;
const capturedHost = v.strictObject(
  {
    host: formatted(exactName),
    address: formatted(loopbackAddress),
    ports: v.optional(v.array(port, 'a list of ports')),
    clearPorts: v.optional(v.array(port, 'a list of ports')),
    allowClearText: v.optional(flag),
    ...forwardingPolicy,
  },
  'a mapping',
);

const REDIRECTED_HOSTS = `a list of 1 to ${MAX_NAMED_HOSTS} hosts`;
const redirect = v.strictObject(
  {
    port: v.optional(port),
    hosts: v.pipe(
      v.array(allowedDestination, REDIRECTED_HOSTS),
      v.minLength(1, REDIRECTED_HOSTS),
      v.maxLength(MAX_NAMED_HOSTS, REDIRECTED_HOSTS),
    ),
  },
  'a mapping',
);

const CALLER_ID =
  'a SPIFFE id such as spiffe://example.org/ns/shop/sa/web, or spiffe://example.org/ns/shop/* for all below';
const CALLER_NAME = 'a DNS name or common name such as web.shop.example, without wildcards';
const MATCHES = 'a mapping with one of serviceAccount, spiffe and certificate';
const SERVICE_ACCOUNT =
  'namespace/name of a service account, such as shop/web, or shop/* for all of the namespace';
const gatewayCaller = v.strictObject(
  {
    name,
    match: v.pipe(
      v.strictObject(
        {
          serviceAccount: v.optional(
            v.pipe(
              v.string(SERVICE_ACCOUNT),
              v.regex(
                /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\/(?:[a-z0-9][a-z0-9.-]{0,252}|\*)$/,
                SERVICE_ACCOUNT,
              ),
            ),
          ),
          spiffe: v.optional(
            v.pipe(
              v.string(CALLER_ID),
              v.maxLength(2048, CALLER_ID),
              v.regex(
                /^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)*(?:\/\*)?$/,
                CALLER_ID,
              ),
            ),
          ),
          certificate: v.optional(
            v.pipe(v.string(CALLER_NAME), v.regex(/^[A-Za-z0-9_.@:-]{1,253}$/, CALLER_NAME)),
          ),
        },
        MATCHES,
      ),
      v.check((match) => Object.values(match).filter((one) => one !== undefined).length === 1, MATCHES),
    ),
    allowedRoutes: v.optional(v.array(name, 'a list of names of routes')),
    allowedCredentials: v.optional(v.array(name, 'a list of names of credentials')),
    limits: v.optional(
      v.strictObject(
        {
          inFlight: v.optional(count),
          requestsPerSecond: v.optional(count),
          burst: v.optional(count),
          connections: v.optional(count),
        },
        'a mapping',
      ),
    ),
  },
  'a mapping',
);

const GATEWAY_CALLERS = 'a list of at most 1000 callers';
const gateway = v.strictObject(
  {
    listen: v.optional(formatted(listenAddress)),
    tls: v.optional(v.strictObject({ certFile: v.optional(path), keyFile: v.optional(path) }, 'a mapping')),
    clientCaFile: v.optional(path),
    serviceAccountTokens: v.optional(v.strictObject({ audience: v.optional(text) }, 'a mapping')),
    callers: v.optional(v.pipe(v.array(gatewayCaller, GATEWAY_CALLERS), v.maxLength(1000, GATEWAY_CALLERS))),
    drainDelay: v.optional(formatted(duration)),
  },
  'a mapping',
);

export const fileSchema = v.strictObject(
  {
    listen: v.optional(formatted(listenAddress)),
    admin: v.optional(
      v.strictObject(
        {
          listen: v.optional(formatted(listenAddress)),
          hosts: v.optional(v.array(host, 'a list of host names')),
        },
        'a mapping',
      ),
    ),
    logLevel: v.optional(words(LOG_LEVELS)),
    credentials: v.optional(v.array(credential, 'a list of credentials')),
    routes: v.optional(v.array(route, 'a list of routes')),
    forwardProxy: v.optional(forwardProxy),
    capture: v.optional(
      v.strictObject(
        {
          hosts: v.pipe(
            v.array(capturedHost, CAPTURED_HOSTS),
            v.minLength(1, CAPTURED_HOSTS),
            v.maxLength(MAX_NAMED_HOSTS, CAPTURED_HOSTS),
          ),
        },
        'a mapping',
      ),
    ),
    redirect: v.optional(redirect),
    gateway: v.optional(gateway),
    interception: v.optional(v.strictObject({ directory: v.optional(path) }, 'a mapping')),
    tokenEndpoint: v.optional(v.strictObject({ listen: v.optional(formatted(listenAddress)) }, 'a mapping')),
    crossSiteRequests: v.optional(words(['allow', 'refuse'])),
    accessLog: v.optional(words(ACCESS_LOGS)),
    accessLogSample: v.optional(fraction(0, 1)),
    limits: v.optional(
      v.strictObject(
        {
          header: v.optional(formatted(size)),
          headerCount: v.optional(count),
          target: v.optional(formatted(size)),
          requestBody: v.optional(formatted(size)),
          replay: v.optional(formatted(size)),
          inFlight: v.optional(count),
          connections: v.optional(count),
          headerTimeout: v.optional(formatted(duration)),
          keepAliveTimeout: v.optional(formatted(duration)),
          http2: v.optional(
            v.strictObject(
              {
                // A larger number than a connection has stream identifiers (RFC 9113 §5.1.1) would bound nothing.
                streams: v.optional(wholeNumber(1, 2 ** 31 - 1)),
                streamWindow: v.optional(formatted(windowSize)),
                connectionWindow: v.optional(formatted(windowSize)),
              },
              'a mapping',
            ),
          ),
        },
        'a mapping',
      ),
    ),
    shutdown: v.optional(v.strictObject({ drainTimeout: v.optional(formatted(duration)) }, 'a mapping')),
  },
  'a mapping of settings',
);

export type FileConfig = v.InferOutput<typeof fileSchema>;
export type CredentialEntry = v.InferOutput<typeof credential>;
export type RouteEntry = v.InferOutput<typeof route>;
export type EgressProxyEntry = v.InferOutput<typeof egressProxy>;
export type InjectionEntry = v.InferOutput<typeof injection>;
export type CapturedHostEntry = v.InferOutput<typeof capturedHost>;
export type GatewayCallerEntry = v.InferOutput<typeof gatewayCaller>;
export type AllowedDestinationEntry = v.InferOutput<typeof allowedDestination>;
