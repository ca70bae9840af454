/**
 * The configuration file: its shape, its defaults and its words, in one schema. The JSON Schema that is published
 * with the package is generated from it (`npm run generate`).
 */

import * as v from 'valibot';
import { LOG_LEVELS } from '../platform/log/logger.ts';
import { credential, egressProxy } from './credential-schema.ts';
import { field, formatted, fraction, wholeNumber, words } from './value-schemas.ts';
import { ACCESS_LOGS, formats, MAX_NAMED_HOSTS, UPSTREAM_PROTOCOLS } from './values.ts';

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

const routeTls = v.strictObject(
  {
    caFile: v.optional(field.path),
    certFile: v.optional(field.path),
    keyFile: v.optional(field.path),
    serverName: v.optional(field.text),
  },
  'a mapping',
);

const timeouts = v.strictObject(
  {
    connect: v.optional(formatted(formats.duration)),
    response: v.optional(formatted(formats.duration)),
    idle: v.optional(formatted(formats.duration)),
  },
  'a mapping',
);

/** Shared by routes and destinations of the forward proxy. */
const forwardingPolicy = {
  credential: v.optional(field.name),
  inject: v.optional(injections),
  existingAuthorization: v.optional(words(['replace', 'keep', 'reject'])),
  whenTokenUnavailable: v.optional(words(['fail', 'passthrough'])),
  retryOn401: v.optional(field.flag),
  timeouts: v.optional(timeouts),
  tls: v.optional(routeTls),
  egressProxy: v.optional(egressProxy),
  protocol: v.optional(words(UPSTREAM_PROTOCOLS)),
};

export const route = v.strictObject(
  {
    name: field.name,
    match: v.optional(
      v.strictObject({ host: v.optional(field.host), pathPrefix: v.optional(field.pathPrefix) }, 'a mapping'),
    ),
    upstream: v.optional(formatted(formats.upstream)),
    stripPrefix: v.optional(field.flag),
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
    allowClearText: v.optional(field.flag),
    upgradeToTls: v.optional(field.flag),
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
    host: formatted(formats.exactName),
    address: formatted(formats.loopbackAddress),
    ports: v.optional(v.array(port, 'a list of ports')),
    clearPorts: v.optional(v.array(port, 'a list of ports')),
    allowClearText: v.optional(field.flag),
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
    name: field.name,
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
    allowedRoutes: v.optional(v.array(field.name, 'a list of names of routes')),
    allowedCredentials: v.optional(v.array(field.name, 'a list of names of credentials')),
    limits: v.optional(
      v.strictObject(
        {
          inFlight: v.optional(field.count),
          requestsPerSecond: v.optional(field.count),
          burst: v.optional(field.count),
          connections: v.optional(field.count),
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
    listen: v.optional(formatted(formats.listenAddress)),
    tls: v.optional(
      v.strictObject({ certFile: v.optional(field.path), keyFile: v.optional(field.path) }, 'a mapping'),
    ),
    clientCaFile: v.optional(field.path),
    serviceAccountTokens: v.optional(v.strictObject({ audience: v.optional(field.text) }, 'a mapping')),
    callers: v.optional(v.pipe(v.array(gatewayCaller, GATEWAY_CALLERS), v.maxLength(1000, GATEWAY_CALLERS))),
    drainDelay: v.optional(formatted(formats.duration)),
  },
  'a mapping',
);

export const fileSchema = v.strictObject(
  {
    listen: v.optional(formatted(formats.listenAddress)),
    admin: v.optional(
      v.strictObject(
        {
          listen: v.optional(formatted(formats.listenAddress)),
          hosts: v.optional(v.array(field.host, 'a list of host names')),
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
    interception: v.optional(v.strictObject({ directory: v.optional(field.path) }, 'a mapping')),
    tokenEndpoint: v.optional(
      v.strictObject({ listen: v.optional(formatted(formats.listenAddress)) }, 'a mapping'),
    ),
    crossSiteRequests: v.optional(words(['allow', 'refuse'])),
    accessLog: v.optional(words(ACCESS_LOGS)),
    accessLogSample: v.optional(fraction(0, 1)),
    limits: v.optional(
      v.strictObject(
        {
          header: v.optional(formatted(formats.size)),
          headerCount: v.optional(field.count),
          target: v.optional(formatted(formats.size)),
          requestBody: v.optional(formatted(formats.size)),
          replay: v.optional(formatted(formats.size)),
          inFlight: v.optional(field.count),
          connections: v.optional(field.count),
          headerTimeout: v.optional(formatted(formats.duration)),
          keepAliveTimeout: v.optional(formatted(formats.duration)),
          http2: v.optional(
            v.strictObject(
              {
                // RFC 9113 §5.1.1: no connection has more.
                streams: v.optional(wholeNumber(1, 2 ** 31 - 1)),
                streamWindow: v.optional(formatted(formats.windowSize)),
                connectionWindow: v.optional(formatted(formats.windowSize)),
              },
              'a mapping',
            ),
          ),
        },
        'a mapping',
      ),
    ),
    shutdown: v.optional(
      v.strictObject({ drainTimeout: v.optional(formatted(formats.duration)) }, 'a mapping'),
    ),
  },
  'a mapping of settings',
);

export type FileConfig = v.InferOutput<typeof fileSchema>;
export type RouteEntry = v.InferOutput<typeof route>;
export type InjectionEntry = v.InferOutput<typeof injection>;
export type CapturedHostEntry = v.InferOutput<typeof capturedHost>;
export type GatewayCallerEntry = v.InferOutput<typeof gatewayCaller>;
export type AllowedDestinationEntry = v.InferOutput<typeof allowedDestination>;
